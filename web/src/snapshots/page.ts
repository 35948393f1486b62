/** The time of a snapshot and its replay: a file of its own, /snapshots.js, which the page fetches with the first snapshot that it shows. */
export { SnapshotReplay } from './replay'
export { SnapshotTime } from './time'
