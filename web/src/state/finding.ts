/** What a decision found: a person of a gallery, or a classifier's label. */
import type { Decision } from '../api'

/** Decided without a gallery: by a classifier. */
export function isClassified(decision: Decision): boolean {
    return decision.gallery_version === 0
}

/** Who or what it is, or why nobody and nothing. */
export function whoOf(decision: Decision): string {
    if (decision.verdict === 'error') {
        return decision.error || 'not decided'
    }
    return decision.person ?? decision.label ?? (isClassified(decision) ? 'no label' : 'nobody known')
}
