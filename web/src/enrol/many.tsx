/** Many people at once, a folder each: those that can be enrolled, and what is wrong with the others. */
import { State } from '../components/state'
import { counted } from '../format'
import { change, draftOf, lackOf, usableOf, type Known, type Person } from './enrolment'
import { whyOut } from './pictures'

const NAMED = 50 // left out pictures that are named one by one

function Row({ ion, known, person, place }: { ion: string; known: Known; person: Person; place: number }) {
    const lack = lackOf(known, person)
    const has = known.byPerson.get(person.name.trim())?.length ?? 0
    const out = person.pictures.filter((one) => whyOut(known, one) !== '')
    const rename = (name: string) => change(ion, { people: draftOf(ion).people.map((one, i) => (i === place ? { ...one, name } : one)) })
    return (
        <tr>
            <td>
                <input class="input" type="text" aria-label={`Name of person ${place + 1}`} autocomplete="off" value={person.name} onInput={(event) => rename(event.currentTarget.value)} />
            </td>
            <td>
                {lack === '' ? <State tone="good">{has > 0 ? `adds to ${has}` : 'new'}</State> : <State tone="bad">stays out</State>}
            </td>
            <td class="num">
                {usableOf(known, person).length} of {person.pictures.length}
            </td>
            <td>
                {lack}
                {out.length > 0 && (
                    <details>
                        <summary>{counted(out.length, 'picture')} left out</summary>
                        <ul>
                            {out.slice(0, NAMED).map((one) => (
                                <li key={one.sha256} class="wrap">
                                    <code>{one.from}</code> {whyOut(known, one)}
                                </li>
                            ))}
                        </ul>
                        {out.length > NAMED && <p class="muted">and {out.length - NAMED} more</p>}
                    </details>
                )}
            </td>
        </tr>
    )
}

export function Many({ ion, known }: { ion: string; known: Known }) {
    return (
        <table aria-label="People to enrol">
            <thead>
                <tr>
                    <th scope="col">Person</th>
                    <th scope="col">Gallery</th>
                    <th scope="col">Usable</th>
                    <th scope="col">What is wrong</th>
                </tr>
            </thead>
            <tbody>
                {draftOf(ion).people.map((person, i) => (
                    <Row key={i} ion={ion} known={known} person={person} place={i} />
                ))}
            </tbody>
        </table>
    )
}
