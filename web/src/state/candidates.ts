/** Versions that wait for a person, over all IONs. */
import { computed, effect, signal } from '@preact/signals'
import type { Candidate } from '../api'
import { is } from '../components/state'
import { getAll, segment } from './http'
import { Resource } from './resource'
import { candidatesVersion, ions } from './store'

export type IonCandidate = Candidate & { ion: string }

export const candidates = new Resource<IonCandidate[]>(async () => {
    const lists = await Promise.all(
        (ions.data.peek() ?? []).map(async (ion) => {
            const items = await getAll<Candidate>(`/ions/${segment(ion.name)}/candidates`)
            return items.map((item) => ({ ...item, ion: ion.name }))
        }),
    )
    return lists.flat()
})

/** Not decided yet: newest first. */
export const pendingCandidates = computed(() =>
    (candidates.data.value ?? []).filter((one) => is(one.state, 'pending_review', 'pending')).sort((a, b) => b.version - a.version),
)

const ionNames = computed(() => (ions.data.value ?? []).map((ion) => ion.name + ion.revision).join('|'))
const wanted = signal('')
effect(() => {
    wanted.value = ionNames.value + '#' + candidatesVersion.value
})
effect(() => {
    if (wanted.value !== '' && ionNames.value !== '') {
        candidates.loadSoon(100)
    }
})
