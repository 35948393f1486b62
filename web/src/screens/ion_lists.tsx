/** Who is on the allow and deny lists of an ION, since when, and by whom. */
import { useEffect } from 'preact/hooks'
import type { Member } from '../api'
import { Empty, Loaded, Panel, When } from '../components/basics'
import { Filter, filtered, NothingMatches, type FilterOf } from '../components/filter'
import { Icon } from '../components/icon'
import { enrolHref } from '../components/ion_acts'
import { ionActions, IonTab } from '../components/ion_head'
import { State } from '../components/state'
import { Table, type Column } from '../components/table'
import { counted, millis } from '../format'
import type { Args, Screen } from '../screen'
import { getAll, segment } from '../state/http'
import { useResource } from '../state/resource'
import { go, href } from '../state/route'
import { ions } from '../state/store'

const FILTER: FilterOf<Member> = {
    text: (one) => one.person,
    keys: { person: (one) => one.person, list: (one) => one.list, by: (one) => one.actor ?? '' },
}

const COLUMNS: Column<Member>[] = [
    { id: 'person', name: 'Person', phone: 'name', sort: (one) => one.person, render: (one) => <b>{one.person}</b> },
    {
        id: 'list',
        name: 'List',
        width: '160px',
        phone: 'state',
        sort: (one) => one.list,
        render: (one) => <State tone={one.list === 'deny' ? 'bad' : 'good'}>{one.list === 'deny' ? 'barred' : 'allowed'}</State>,
    },
    { id: 'since', name: 'Since', width: '220px', phone: 'more', sort: (one) => -millis(one.time_ms), render: (one) => <When time={one.time_ms} /> },
    { id: 'by', name: 'By', width: '160px', phone: 'more', sort: (one) => one.actor ?? '', render: (one) => one.actor ?? '' },
]

function Members({ ion }: { ion: string }) {
    const members = useResource(`members:${ion}`, () => getAll<Member>(`/ions/${segment(ion)}/members`))
    useEffect(() => members.loadSoon(), [ions.data.value])
    return (
        <Loaded resource={members}>
            {(items) => {
                const found = filtered(items, FILTER)
                return items.length === 0 ? (
                    <div class="panel">
                        <Empty icon="person" title="Nobody is on a list" more={<a href={href(['ions', ion, 'decisions'])}>Decisions</a>}>
                            Who is on the deny list is refused at every camera, whatever the model says. Open a decision to allow or bar its person.
                        </Empty>
                    </div>
                ) : (
                    <>
                        <Filter label="Filter people" rows={items} of={FILTER} hint="name, or list:deny by:mara" />
                        <Panel title="Allow and deny lists" window={counted(items.length, 'person', 'people')}>
                            {found.length > 0 ? (
                                <Table label="Allow and deny lists" rows={found} columns={COLUMNS} keyOf={(one) => one.id} />
                            ) : (
                                <NothingMatches rows={items} of={FILTER} what="person" />
                            )}
                        </Panel>
                    </>
                )
            }}
        </Loaded>
    )
}

function IonLists({ args }: { args: Args }) {
    const enrol = (
        <a class="button" href={enrolHref(args['ion']!)}>
            <Icon name="plus" />
            Enrol a person
        </a>
    )
    return <IonTab args={args} tools={enrol}>{(ion) => <Members key={ion.name} ion={ion.name} />}</IonTab>
}

export const ionListsScreen: Screen = {
    id: 'ion-lists',
    title: 'Allow and deny',
    icon: 'person',
    address: 'ions/:ion/lists',
    query: ['q', 'sort'],
    under: 'ions',
    tab: { of: 'ion', name: 'Allow and deny' },
    load: [ions],
    actions: ionActions,
    keys: (args) => [{ key: 'e', name: 'enrol a person', run: () => go(enrolHref(args['ion']!)) }],
    render: IonLists,
}
