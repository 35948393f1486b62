/** Who is on the allow and deny lists of an ION, since when, and by whom. */
import { useEffect } from 'preact/hooks'
import type { Member } from '../api'
import { dayTime } from '../format'
import { getAll, segment } from '../state/http'
import { useResource } from '../state/resource'
import { ions } from '../state/store'
import { Loaded, Panel } from './basics'

export function Members({ ion }: { ion: string }) {
    const members = useResource(`members:${ion}`, () => getAll<Member>(`/ions/${segment(ion)}/members`))
    useEffect(() => members.loadSoon(), [ions.data.value])
    return (
        <Panel title="Allow and deny lists" aside={<span class="muted">{members.data.value?.length ?? ''}</span>}>
            <Loaded resource={members}>
                {(items) =>
                    items.length === 0 ? (
                        <p class="quiet">Nobody is on a list. Open a decision to allow or bar its person.</p>
                    ) : (
                        <div class="table-scroll" tabIndex={0} role="region" aria-label="Allow and deny lists">
                            <table class="table inset">
                                <thead>
                                    <tr>
                                        <th scope="col">Person</th>
                                        <th scope="col">List</th>
                                        <th scope="col">Since</th>
                                        <th scope="col">By</th>
                                    </tr>
                                </thead>
                                <tbody>
                                    {items.map((one) => (
                                        <tr key={one.id}>
                                            <th scope="row">{one.person}</th>
                                            <td>
                                                <span class={`chip tone-${one.list === 'deny' ? 'bad' : 'good'}`}>{one.list === 'deny' ? 'barred' : 'allowed'}</span>
                                            </td>
                                            <td class="date">{dayTime(one.time_ms)}</td>
                                            <td>{one.actor ?? ''}</td>
                                        </tr>
                                    ))}
                                </tbody>
                            </table>
                        </div>
                    )
                }
            </Loaded>
        </Panel>
    )
}
