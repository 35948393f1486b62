/**
 * The records as the server sends them, made by web/api_types.py from its OpenAPI document: do not edit.
 *
 * - Every time field ends in _ms in its name and is an RFC 3339 string ("2025-11-21T02:00:00.123Z"), or null for never.
 * - A list answers {"items": [...], "next": cursor | null}; `?cursor=<next>` asks for the following page.
 * - A member with "?" may be missing; one with "| null" is there and may say nothing.
 * - States are words; the page compares and shows them in lower case, an unknown one in a neutral colour.
 */
export type Time = string

export interface List<T> {
    items: T[]
    next: string | null
}

export interface AbComparison {
    arms: Arm[] // The version that serves, and the candidate
    begun_ms: Time // Since when samples count (ms)
    confidence: number // That is asked for
    deployment: string // Deployment whose requests are shared
    difference: number | null // Of the candidate's mean from the other's
    difference_high: number | null // Its interval, which holds however often one looks
    difference_low: number | null // Its interval, which holds however often one looks
    ion: string // ION
    is_less_better: boolean // Less of it is better
    is_rate: boolean // Samples are yes or no
    left_s: number // Until then
    link: string // Link, FROM:TO
    metric: string // conversion, error or a KPI
    min_samples: number // Of each version, before they are compared
    model: string // Model
    p: number | null // One-sided, of a single look: that it is better by chance
    p_better: number | null // The same however often one looks; what decides
    p_worse: number | null // That it is worse by chance, however often one looks
    share_percent: number // Of the requests, that the candidate answers
    until_ms: Time // When its time is over (ms)
    uplift: number | null // The difference as a share of the other's mean
    z: number | null // The difference in standard errors
}

export interface AccuracyGroup {
    accuracy: number | null // Their share; null: none is known
    high: number // Upper end of that interval
    low: number // Lower end of its 95 % interval
    missed: number // Wrong ones that named nobody: false denies, of people who are let in
    n: number // Decisions whose truth is known
    name: string // Camera, person, label, version, pipeline or day
    right: number // Those that said it
    taken: number // Wrong ones that named a person, or a label: false admits, if that is let in
}

/** GET /alerts, GET /alerts/{id} */
export interface Alert {
    acknowledged_by: string | null // Who has seen it
    acknowledged_ms: Time | null // When (ms)
    acknowledged_note: string | null // What they said
    count: number // How often it was raised
    data: unknown // Details
    deliveries?: Delivery[] | null // Of a single one: who was told, and when
    firings?: Firing[] | null // Of a single one: what rules made of it
    id: string // Identifier
    is_sandbox: boolean // Of an ION that is a sandbox: nobody is told
    key: string // One unresolved alert per key
    kind: string // drift, training_failed, node_lost …
    last_ms: Time // Last time (ms)
    message: string // A sentence
    project: string | null // Whose the subject is; absent: the platform's
    raised_ms: Time // First time (ms)
    resolved_by: string | null // Who ended it; nobody: its cause was gone
    resolved_ms: Time | null // When it ended (ms)
    severity: string // info, warning or critical
    silence: string | null // Silence that holds it back: nobody is told
    silenced_ms: Time | null // Until when (ms)
    state: string // open, acknowledged or resolved
    status: string // Now: raised, acknowledged, silenced or resolved
    subject: string | null // About what: ion/NAME, node/NAME …
}

/** GET /alert-receivers, GET /alert-receivers/{name} */
export interface AlertReceiver {
    created_by: string // Who made it
    created_ms: Time // Creation (ms)
    doc: string | null // What it is for
    is_failing: boolean // It refused a message, or does not take any
    kind: string // webhook, email or alertmanager
    last_sent_ms: Time | null // When it last took one (ms)
    n_waiting: number // Messages that wait for it
    name: string // What rules call it
    options: unknown // Options of its kind
    projects: unknown // Projects whose rules may use it; null: all
    updated_ms: Time // Last change (ms)
}

/** GET /alert-rules, GET /alert-rules/{name} */
export interface AlertRule {
    action_interval_ms: number // Least time between two times that it acts on one subject (ms)
    actions: unknown // What is done, once for each alert: objects with kind and its options
    created_by: string // Who made it
    created_ms: Time // Creation (ms)
    doc: string | null // What it is for
    escalate_ms: number // Tell escalate_to if nobody has acknowledged it so long after it was told; 0: never (ms)
    escalate_to: unknown // Receivers that are told then
    group_by: string // What shares a message: none (one each), subject or rule
    group_ms: number // How long the first of a message waits for others (ms)
    hold_ms: number // An alert must have lasted so long (ms)
    is_disabled: boolean // It does nothing
    kinds: unknown // Kinds of alerts; null: any
    n_fired: number // Alerts that it told of in the last 30 days
    name: string // Name
    project: string | null // Whose alerts it looks at; null: all, of the platform too
    receivers: unknown // Receivers that are told
    set_by: string | null // Who set it last; its actions are done only while this person may
    severities: unknown // info, warning, critical; null: any
    subjects: unknown // Patterns of subjects, as in ion/door*; null: any
    tells_end: boolean // They are told when it is over, too
    updated_ms: Time // Last change (ms)
}

/** GET /health */
export interface Alive {
    reason?: string | null // Why it is down, and what to do
    status: string // ok; down, with the HTTP status 503, when the server cannot work
    version: string // Version of the server
}

/** GET /allocations, GET /allocations/{id} */
export interface Allocation {
    accelerator: string | null // Their model; null: any
    accelerator_milli: number // What of each accelerator, in thousandths; 0: all of it
    asked_ms: Time | null // When it was asked for (ms)
    closed: string | null // A node of it that takes nothing new over there, and why
    cluster: string // Cluster
    cpu_slots: number // CPUs of each, at least
    created_ms: Time // When it was wanted (ms)
    ended_ms: Time | null // When it had ended (ms)
    ending: string | null // released, time, preempted, cancelled, failed or refused
    ends_ms: Time | null // While it runs: when it ends at the latest (ms)
    id: string // Identifier, also over there
    idle_since_ms: Time | null // Since when nothing needs it (ms)
    job: string | null // The first job that it was asked for
    joined: string[] // The nodes here that are of it
    memory_bytes: number // Memory of each, at least (bytes)
    n_accelerators: number // Accelerators of each
    n_nodes: number // Nodes
    nodes: string[] | null // What its nodes are called over there
    pod: unknown // Image and volumes that jobs want of its pods; null: as the cluster's document says
    pool: string // Pool
    project: string | null // Project of that job
    queue: string | null // Queue; its account pays. null: the cluster's own account
    said: string | null // State or reason in the words of the other side
    started_ms: Time | null // When it began to run (ms)
    starts_ms: Time | null // While it waits: when it is expected to start over there (ms)
    state: string // wanted, pending, running, releasing or ended
    their_id: string | null // What it is called over there: the number of Slurm's job
    time_ms: number // For how long it was asked for; 0: for as long as may be (ms)
    why: string | null // Why it waits, or how it ended
}

export interface Amounts {
    accelerators: number // Devices, whatever their model; of each model with a share too
    cpus: number // CPUs
    memory: number // Bytes
}

/** POST /ions */
export interface AppliedIon {
    comparisons?: AbComparison[] | null // Versions that are compared among the requests of its deployments
    created_by: string // Who applied it first
    created_ms: Time // When (ms)
    document: unknown // What was applied; secrets are shown as ***
    effects?: Effect[] | null // Of a dry run: what would come of it
    firings?: TriggerFiring[] | null // The newest firings of its triggers, newest first
    health?: Health | null // Is all well?
    links: Link[] // Its links, in the order of the document
    list_revision: number // Counts changes of the lists
    mode: string // production or sandbox
    n_decisions: number // Policy decisions made
    n_firings: number // Firings of triggers
    n_served: number // Promotions and rollbacks made
    name: string // Unique name
    pipelines: Pipeline[] // Its pipelines
    project: string // Project it belongs to
    revision: number // Counts changes of the document
    starts: StartingLink[] // Its links that start pipelines: with a dataset's versions, or with models to measure
    state: string // ACTIVE or DELETED
    updated_ms: Time // Last change of the document (ms)
    warnings: string[] // What looks wrong from here, but may be right elsewhere
}

export interface Approval {
    by: string // Person
    roles: unknown // Roles of theirs
    time_ms: number // When (ms)
}

export interface Arm {
    high: number | null // Of a rate, its 95 % interval (Wilson)
    is_live: boolean // It served before the comparison
    low: number | null // Of a rate, its 95 % interval (Wilson)
    mean: number | null // Their mean; of conversion and error the rate
    n: number // Samples
    variance: number | null // Of the samples
    version: number // Version
}

export interface ArmedTrigger {
    armed_ms: Time // Since when the document has it (ms)
    fired_ms: Time | null // When it fired last (ms)
    id: string // ION:PIPELINE:PLACE
    ion: string | null // ION
    kind: string // Kind
    n_bytes: number // Its size (bytes)
    n_files: number // Files in it
    n_fired: number // How often it fired
    n_rows: number // Rows of tables in it
    next_ms: Time | null // Next time of a schedule (ms)
    pipeline: string // Pipeline that it starts
    position: number // Its place in the pipeline's list, from 0
    reason: string | null // Why it fired last
    state: string // ARMED or REMOVED
    text: unknown // Kind and options, as the document has them
    updated_ms: Time | null // Last change (ms)
    used_bytes: number // Size of that (bytes)
    used_files: number // Files in that
    used_rows: number // Rows of tables in that
    used_version: number // Version that the last run began with
    version: number // Newest version of the pipeline's dataset
}

/** GET /runs/{id}/artifacts */
export interface Artifact {
    blob: string | null // SHA-256 of its bytes; null of a folder
    bytes: number // Size; 0 of a folder (bytes)
    created_ms: Time | null // When it was put there; null of a folder (ms)
    is_folder: boolean // Is it a folder?
    path: string | null // Path within the run
}

/** GET /jobs/{id}/board */
export interface Board {
    revision: number // Of the newest of them, for `after`; 0: there is none
    values: Record<string, string> // By key: those whose tasks are still at it
}

export interface Box {
    h: number // Height
    w: number // Width
    x: number // Left, in pixels of the picture
    y: number // Top
}

export interface BusyJob {
    accelerators_used: number // Accelerators that they have
    cpus_busy: number | null // CPUs that its tasks use, as agents said it last
    cpus_used: number // CPUs that are kept for its tasks on nodes
    created_by: string | null // Who submitted it
    id: string // Job
    kind: string // Its kind
    memory_kept_bytes: number // Memory that is kept for them, bytes
    memory_used_bytes: number | null // Memory that they use, bytes
    n_tasks: number // How many they are
    name: string // Its name
    project: string // Its project
}

/** GET /top/jobs */
export interface BusyJobs {
    items: BusyJob[] // Those that use most first; at most 1000
    next: string | null // Always null
}

/** GET /session */
export interface Caller {
    csrf: string | null // What a browser repeats in X-Weir-Csrf with each change; null for tokens
    gone_roles: GoneRole[] // Roles of the caller that are not there any more: they give no rights
    projects: Record<string, string[]> // What the caller may in single projects, by name
    proofs: string[] // Kinds of proof that the server takes, as in `weir explain proof`
    rights: string[] // What the caller may on the platform and in all projects
    role: string // At most this role
    user: string // Who calls
    version: string // Version of the server
}

/** GET /cameras, GET /cameras/{id} */
export interface Camera {
    age_ms: number | null // Age of its newest frame when it was reported, ms
    clock_off_ms: number | null // By how much its clock is ahead, ms; wrong from 5 s on; null: it tells none
    codec: string | null // How they are encoded
    cure: string | null // What to do
    damaged: number // Frames that could not be decoded
    dropped: number // Frames that were passed over for newer ones
    error: string | null // Why it is lost, in its own words
    fps: number | null // Frames a second that are taken (1/s)
    fps_expected: number | null // Frames a second that the document asks for, else that the camera sends (1/s)
    frames: number // Frames that came since the replica started, as all of these
    health: string[] // What is not well: dark, dazzled, frozen, covered, blurred, moved, clock
    height: number | null // Height of its frames, in pixels
    id: string // ION:PIPELINE:CAMERA
    ion: string // ION
    kind: string // Kind of its source
    last_decision_ms: Time | null // The newest decision of the ION about a camera of this name (ms)
    lost: number // Packets that did not come
    mode: string // How the ION runs: production or sandbox
    n_decided: number // Decisions of the last 30 minutes
    n_unknown: number // Decisions among these about people whom nobody knows
    name: string // What decisions call it
    pipeline: string // Pipeline that decides about its frames
    project: string // Project of the ION
    replica: string | null // Replica that takes its frames
    reported_ms: Time | null // When its replica reported last (ms)
    since_ms: Time | null // When that began (ms)
    /** sees; unwell, if its frames come and health says what is wrong; lost; connecting, for the first time; unknown, if no replica reports it */
    state: string
    width: number | null // Width of its frames, in pixels
}

/** GET /ions/{name}/candidates */
export interface Candidate {
    approvals: unknown // Who has approved it there
    base: unknown // The deployment's figures at that time
    begun_ms: Time | null // When it came into effect (ms)
    blob: string // SHA-256 of the model file
    blocked: string | null // Why its policy cannot judge it, as far as can be seen so far
    created_ms: Time // When it came to the link (ms)
    evaluation: unknown // How it is measured for the policy where it stands
    id: string // ION:LINK:MODEL-VERSION
    interface: unknown // What it takes and gives: inputs, outputs, classes
    ion: string // ION
    is_mirrored: boolean // Its answers are compared with those of the version that serves
    link: string // Link, FROM:TO
    link_from: string // Training pipeline of the link, or model/NAME
    link_to: string // Prediction pipeline of the link, or deployment/NAME
    made_by: string | null // Who triggered its training by hand, or registered it
    metrics: Record<string, unknown> | null // Measured quality
    model: string // Model
    model_version: string // Identifier of the model version
    position: number // Policy of the link's chain where it stands or stood last, from 0
    position_ms: Time | null // Since when it stands there (ms)
    served_ms: Time | null // When it began to serve (ms)
    served_seq: number // Order of serving; 0 = never
    share_ppm: number // Share of the deployment's requests that it is to answer while it is tried, in millionths
    /** PENDING_REVIEW, WAITING, APPROVED, SHADOW, CANARY, AB, DEPLOYING, SERVING, DEPLOY_FAILED, PAUSED, RETIRED, REJECTED or ROLLED_BACK */
    state: string
    step: number // Step of the trial, from 0
    step_ms: Time | null // When that step was asked for (ms)
    until_ms: Time | null // When that policy is asked again (ms)
    updated_ms: Time | null // Last change of its state (ms)
    version: number // Number of the model version
    waits_for: string | null // That policy, while it waits
    waits_why: string | null // What it waits for, in words
}

export interface CardAccuracy {
    accuracy: number | null // Their share
    high: number | null // To here
    low: number | null // From here (95 %)
    n: number // Decisions whose truth is known
    name: string | null // Camera; null: all
    right: number // Right ones of these
}

export interface CardClass {
    n_files: number // Its files
    name: string // Class
}

export interface CardData {
    classes: CardClass[] // The first 100 classes; without people who were forgotten
    dataset: string | null // Dataset it was trained with
    n_others: number // Classes beside these
    version: number | null // Version of that
    why: string | null // Why they are not counted
}

export interface CardEvaluation {
    created_by: string | null // Who had it done
    created_ms: Time | null // When
    dataset: string | null // On which dataset
    dataset_version: number | null // Version of that
    metrics: Record<string, number> // Figures; null = not a number
    name: string // Its name
    run: string // Run that measured
}

export interface CardLive {
    accuracy: CardAccuracy // Of all decisions whose truth is known
    cameras: CardAccuracy[] // The same by camera
    ion: string // ION
    pipeline: string // Pipeline that serves the version
    signals: CardSignal[] // The newest report of each signal
    since_ms: Time // Figures are those since then
}

export interface CardSignal {
    drifted: boolean // Taken as drift
    n_samples: number // Samples in the window
    p_value: number | null // Chance of it without drift
    signal: string // What was compared with the training data
    statistic: string // How: ks, chi2 …
    time_ms: Time | null // When
    value: number | null // Value of the statistic
}

export interface ChainCut {
    first_ms: Time // When the first was written
    first_seq: number // First event
    last_ms: Time // When the last was written
    last_seq: number // Last event
    n: number // How many
}

export interface ChainFinding {
    message: string // In a sentence
    number: number // Its row in the chain
    seq: number // Event where it shows
    what: string // Kind of damage, for programs
}

export interface ChangedJob {
    after: string // The same with the change
    before: string // What the next cycle does with it: starts, waits, evicted, stays …
    id: string // Job
    name: string // Its name
    project: string // Its project
    queue: string // Its queue
    why_after: string // The same with the change
    why_before: string // Why, or where
}

export interface ChangedQueue {
    after: QueueShare | null // With the change
    before: QueueShare | null // As it is; null: it is not there yet
    name: string // Queue
}

/** POST /clusters/{name}/check */
export interface CheckOfCluster {
    is_ready: boolean // Nothing lacks
    missing: string | null // What lacks: a sentence that names the option, what the other side said, and the cure
    /** What is mostly wrong, and may be meant: an address of this server that its nodes do not reach */
    notice: string | null
    pools: Pool[] // What can be had there; empty if something lacks
}

/** GET /jobs/{id}/checkpoint */
export interface Checkpoint {
    files: CheckpointFile[] // By path
    version: string // Another after each change
}

/** POST /jobs/{id}/checkpoint */
export interface CheckpointChange {
    missing: string[] // Parts to send first: nothing was changed; none: it is done
    version: string // As it is now
}

export interface CheckpointFile {
    bytes: number // Its size (bytes)
    path: string // Where it lies in the folder
}

export interface Claim {
    /** gallery_people, impostor_searches, claimable_rate, measured_rate, unknown_a_day or false_admits_a_day */
    name: string
    rests_on: string // What it rests on, in words
    unit: string // people, searches, share or per day
    value: number | null // null: not known
}

/** GET /clusters, GET /clusters/{name} */
export interface Cluster {
    after_ms: number // A job has waited for so long before nodes are asked for it here (ms)
    created_by: string // The user that added it
    created_ms: Time // When (ms)
    driver: string // Kind of its supplier: `weir explain drivers`
    heard_ms: Time | null // Its last answer (ms)
    idle_ms: number // Nodes on which nothing has run for so long are given back (ms)
    is_draining: boolean // Nothing new is asked for
    max_nodes: number // Nodes at a time; 0: no bound of Weir's
    n_allocations: number // Allocations of it that have not ended
    n_nodes: number // Nodes of it that run
    n_wanted: number // Nodes that were asked for, and wait
    name: string // Name
    options: Record<string, unknown> | null // Options of the driver; secrets are hidden
    said: string | null // What lacks, or why it does not answer
    state: string // new, ready, wrong (something lacks) or silent (it does not answer)
    time_ms: number // For how long nodes are asked for, if no job says how long it runs; 0: for as long as may be (ms)
}

/** POST /clusters/check */
export interface ClusterCheck {
    is_ready: boolean // Nothing lacks
    missing: string | null // What lacks: a sentence that names the option, what the other side said, and the cure
    /** What is mostly wrong, and may be meant: an address of this server that its nodes do not reach */
    notice: string | null
    pools: Pool[] // What can be had there; empty if something lacks
}

/** GET /usage */
export interface ClusterUsage {
    by: string // By what it is added up
    from: Time // From this hour on
    items: UsageRow[] // Those with the most given first; or by time
    next: string | null // Always null
    to: Time // Until before this one
    total: UsageFigures // All of them
}

export interface Comparison {
    accuracy: number | null // Share on which the version is right
    better: number // 1: the version is better, -1: it is worse, 0: nobody can say
    confusions: unknown // The most frequent wrong answers: [{label, answer, n, live_n}]
    dataset: string // Dataset with the pictures
    dataset_version: number // Its version
    live_accuracy: number | null // Share on which the other is right
    live_model: string // Model that it was compared with
    live_version: number // Its version
    model: string // Model that was measured
    n_both_wrong: number // Pictures on which both are wrong, with different answers
    n_candidate_right: number // Pictures on which the version alone is right
    n_errors: number // Pictures that cannot be read
    n_kept: number // Of those three, how many the sample has
    n_live_right: number // Pictures on which the live model alone is right
    n_samples: number // Pictures that both were asked
    p_value: number | null // Of the exact McNemar test, two-sided
    run: string // Run that measured
    time_ms: Time // When it was measured (ms)
    version: number // Its version
}

/** GET /runs/{id}/comparison */
export interface ComparisonOfRun {
    comparison: Comparison | null // Of the run; of an ION's version the newest, and one with what serves before all
    why: string | null // Why there is none, and how to get one
}

/** GET /datasets, GET /datasets/{name} */
export interface Dataset {
    created_by: string | null // Who made it
    created_ms: Time // When it was made (ms)
    is_uploaded: boolean // Files came through the API
    kind: string // folder (classes are folders) or idx
    name: string // Unique name
    path: string // Folder on the server; absent = files are uploaded
    project: string // Project it belongs to
}

/** GET /datasets/{name}/versions/{version}/lineage */
export interface DatasetLineage {
    dataset: LineageDataset // The version
    datasets: LineageDataset[] // Dataset versions on the way back
    galleries: LineageGallery[] // Pipelines that it was the gallery of
    is_cut: boolean // There is more than is named
    made: LineageName[] // Dataset versions that came of it
    places: LineagePlace[] // Links that these came to
    read_by: LineageReader[] // Runs that read it, or what came of it
    runs: LineageRun[] // Runs on the way back, the nearest first
    unknown: string[] // What is not known, a sentence each
    versions: LineageVersion[] // Model versions that came of it
}

/** GET /datasets/{name}/versions */
export interface DatasetVersion {
    blob: string // SHA-256 of the manifest
    bytes: number // Size of all files (bytes)
    created_by: string | null // Who made it: a user, or ion/NAME for a preparation
    created_ms: Time // When it was made (ms)
    dataset: string // Dataset
    digest: string // SHA-256 over names and contents
    id: string // Identifier
    n_classes: number // Classes
    n_files: number // Files
    n_forgotten?: number | null // Files that went with them; in the list
    n_rows: number // Rows of its .csv, .tsv and .jsonl files
    n_unread: number // Files that Weir's own trainings skip: damaged, or no pictures; 0 of kind idx
    run: string | null // Run whose program wrote its files
    tombstones?: Tombstone[] | null // People who were deleted from it; in the list
    version: number // Number
}

/** GET /decisions, GET /decisions/{id}, GET /passages, GET /models/{name}/versions/{version}/decisions, GET /datasets/{name}/versions/{version}/decisions */
export interface Decision {
    /** Where it is in the picture, in pixels: {x, y, w, h, of: how many were found}; null: no detector looked, or it found nothing */
    box: unknown
    brightness: number | null // Mean brightness of the frame
    camera: string // Camera
    /** What has happened in a place where things are counted: {place, what: entered, left, long, crossed, over, under or within, to: right or left, n: how many are there now}; null: it is about no place */
    counted: unknown
    durable_us: number // From frame to decision on disk (us)
    error: string | null // What went wrong
    frame: number // Number of the frame; below 0: its source has none for it
    gallery_version: number // Gallery version
    id: string // Identifier, made by the replica
    image: string | null // SHA-256 of the face
    ion: string // ION
    is_sandbox: boolean // It was made in the sandbox: it had no effect
    key: string | null // What names the frame, if camera and number do not
    label: string | null // What a classifier or detector took it for; of a number in a place what it is
    labels: unknown // The likeliest labels, [{label, score}]; null unless asked for
    latency_us: number // From frame to decision (us)
    list_revision: number // Revision of the lists
    model_version: number // Model version that decided
    /** The frames that it rests on: {id, first, last, n_frames, n_counted, n_named, refused: {why: n}, rule: {n, m, accept, deny, gone_ms} or null where things are counted, nearest: [{person, score}] of the best frame, frames: [{time_ms, score, person, counts, why, box, is_best, bytes, has_picture}]}; null: one */
    passage: unknown
    person: string | null // Who was recognised
    pipeline: string // Pipeline
    /** How good the face is to recognise: {width, sharpness, yaw, pitch, roll, brightness}, and refused: why it was not compared */
    quality: unknown
    replica: string | null // Replica that decided
    score: number | null // Similarity to the nearest person, or the likeliest label's probability
    seq: number // Order of arrival
    threshold: number | null // Score that was needed
    time_ms: Time // When (ms)
    verdict: string // grant, deny, unknown, error or label
}

export interface DecisionBucket {
    deny: number // Denied
    error: number // Not decided
    grant: number // Granted
    label: number // A label, of a classifier
    time_ms: Time // Begin of this part of the time
    unknown: number // Nobody known, or no label
}

/** GET /decisions/{id}/lineage */
export interface DecisionLineage {
    datasets: LineageDataset[] // Dataset versions on the way back
    decision: Decision // The decision
    detector: LineageVersion | null // Version of the model that its pipeline's stages found with
    forgotten: LineageForgotten | null // The person whom it recognised was forgotten
    gallery: LineageName | null // Who was known
    is_certain: boolean // It is known which model that was
    is_cut: boolean // There is more than is named
    place: LineagePlace | null // What served, and what let it through until then
    revision: LineageRevision | null // What was applied when it was made
    runs: LineageRun[] // Runs on the way back, the nearest first
    unknown: string[] // What is not known, a sentence each
    version: LineageVersion | null // Model version
}

/** GET /decisions/summary */
export interface DecisionSummary {
    buckets?: DecisionBucket[] | null // Counts by equal parts of the time, if asked for
    decisions: number // How many were counted
    durable_p99_ms: number | null // 99 % were on disk no later (ms)
    from_ms: Time | null // From when on the counts are complete
    last_seq: number // Number of the newest; 0: none
    latency_ms: LatencyQuantiles // From frame to decision
    per_second: number // Rate since then
    verdicts: VerdictCounts // By verdict
}

export interface DeletionSteps {
    longest_ms: number // The longest (ms)
    n: number // Steps of deletion since the start
    n_over_10_ms: number // Those that took longer than 10 ms
}

/** GET /alert-deliveries, GET /alert-deliveries/{id} */
export interface Delivery {
    alert: string | null // The first alert that it tells of
    attempts: number // How often it was tried
    created_ms: Time // When it was decided (ms)
    done_ms: Time | null // When it was sent or given up (ms)
    due_ms: Time | null // Not before (ms)
    error: string | null // What went wrong last
    event: string // raised, escalated, repeated, resolved or test
    id: string // Identifier, the same with each try
    message: unknown // What is sent
    project: string | null // The rule's project; null: of the platform
    receiver: string // Where it goes
    rule: string | null // Rule that wants it; null: a test
    seq: number // Order of decision
    state: string // pending, sent or dead
}

export interface DeployedGallery {
    dataset: string // Dataset
    version: number // Its version
}

export interface DeployedModel {
    name: string // Model
    version: number // Its version
}

/** GET /deployments, GET /deployments/{name} */
export interface Deployment {
    batch_max: number // Requests that one computation takes at most
    comparisons: AbComparison[] // Versions that are compared among its requests
    cpu_millis: number // CPUs that are kept for each replica, in thousandths of one
    cpus: number // CPUs of each replica
    created_by: string | null // Who made it
    created_ms: Time // When it was made (ms)
    delay_max_us: number // How long a request waits for others at most (us)
    failure: string | null // Why the last one ended
    follows: string | null // Alias whose version gets all traffic, wherever it moves; null: none
    gpus: number // Accelerators of each replica
    hold_ms: number // How long a request waits at most for a first replica (ms)
    idle_after_ms: number // Load that fewer replicas could bear for so long makes them fewer (ms)
    is_settled: boolean // What was asked for is in effect, or has failed
    less_ms: Time | null // Since when fewer would do (ms)
    memory_bytes: number // Memory of each replica; 0: no limit (bytes)
    mirror: number // Version that gets a copy of each request, whose answer is compared and dropped; 0: none
    model: string // Model whose versions answer
    more_ms: Time | null // Since when the load asks for more replicas (ms)
    n_failures: number // Replicas that ended in a row, since one was ready
    n_ready: number // Replicas that answer
    n_started: number // Replicas started so far
    n_wanted: number // Replicas that there should be now
    name: string // Name, in the address of requests
    next_start_ms: Time | null // No replica is started before (ms)
    previous: Share[] | null // Shares in effect before these
    project: string // Project it belongs to
    queue_max: number // Requests that wait in one replica at most; more get 503
    reason: string | null // Why it does not serve, or not what was asked for
    replicas: DeploymentReplica[] // Its replicas
    replicas_max: number // Replicas at most
    replicas_min: number // Replicas at least
    revision: number // Counts changes of what replicas must load
    state: string // DEPLOYING, SERVING, IDLE or FAILED
    state_ms: Time // Since when it is in this state (ms)
    traffic: string // Shares in effect: v3=90,v4=10; none
    updated_ms: Time // When a person changed it last (ms)
    versions: ServedVersion[] // What its replicas load
    warnings?: string[] | null // Of a change: what callers of the version that served will notice
}

/** GET /deployments/{name}/disagreements */
export interface DeploymentDisagreements {
    items: DifferedAnswer[] // At most 50 of each version, the newest first; since the server started
    next: string | null // Always null: all are there
}

/** GET /deployments/{name}/figures */
export interface DeploymentFigures {
    items: DeploymentVersionFigures[] // By version
    next: string | null // Always null: all versions are there
    time_ms: Time // When they were read (ms)
}

export interface DeploymentReplica {
    created_ms: Time // When it was wanted first (ms)
    deployment: string // Deployment
    id: string // DEPLOYMENT-NUMBER
    job: string | null // Its job
    job_state: string | null // State of its job
    n_running: number // Requests that it works at
    number: number // Number, counted up
    reason: string | null // Why its job waits or failed
    revision: number // Revision of the deployment that it knows
    state: string // WANTED, STARTING, READY, SILENT or STOPPING
    stats: Record<string, unknown> | null // Its figures
    time_ms: Time | null // When it reported last (ms)
    url: string | null // Where it answers
    versions: unknown[] | null // What it has loaded: version, state, reason, executor …
}

export interface DeploymentVersionFigures {
    /** [end, count]: how many took less than end, in us, and not less than the end before; the difference of two answers is what came between them */
    buckets: unknown[]
    /** What a classifier answered: how often each class was the likeliest, by number; the 64th has all beyond, and zeros at the end are left out */
    classes: number[]
    compared_us: number // Time that the first answers took, of the copies that were answered
    copies_us: number // Time that the copies' answers took
    n_cancelled: number // Requests whose client left before the answer
    n_disagreed: number // Copies whose answer was another one, or none
    n_failed: number // Of these: answered with a 5xx, or not at all
    n_held: number // Now, waiting for a replica
    n_in_flight: number // Now, at replicas
    n_mirror_dropped: number // Copies that were not sent, at a bound, or of requests without an answer
    n_mirrored: number // Copies that the mirrored version answered, or failed to
    n_neither: number // Copies of requests that both versions answered with a 4xx or 5xx
    n_only_copy: number // Copies answered with a 4xx, of requests that were accepted
    n_only_first: number // Copies that were accepted, of requests answered with a 4xx
    n_refused: number // Of these: refused at a bound, or held too long
    n_requests: number // Requests that were answered, whatever the answer
    n_retried: number // Tries at another replica, of what the first had not begun
    n_unaccepted: number // Of these: answered with a 4xx, as no request that the version takes
    p50_us: number // Half of the requests took no longer (us)
    p99_us: number // 99 % took no longer (us)
    /** By how much: answers by margin in logits m between the likeliest class and the next, in the bin 8 * log2(1 + m), at most 63 */
    scores: number[]
    sum_us: number // Times from request to answer, added up (us)
    version: number // Version; 0: requests for which none was chosen
}

/** GET /ions/{name}/pipelines/{pipeline}/replicas/{replica}/desk */
export interface Desk {
    looks: DeskLook[] // Photos to look at, at most one question at a time
    revision: number // What is watched: the next question's {after}
    watched: string[] // Cameras
}

export interface DeskLook {
    id: string // For the answer
    person: string | null // The person said to be on them
    pictures: string[] // Photos in base64
}

/** GET /devices */
export interface Device {
    changed_ms: Time // Since when it is in its state (ms)
    details: Record<string, unknown> | null // What its kind tells besides: links, processes, speed
    ecc_errors: number // Memory errors that could not be corrected; -1: not told
    holders: string | null // Those tasks: JOB/RANK
    id: string // What it is known by: a GPU's UUID, a network card's name
    /** Since when it has computed for less than 5 % of the time; null: it does, or does not tell (ms) */
    idle_since_ms: Time | null
    idx: number // Its index there, which it keeps
    kind: string // cpu, memory, disk, nic, gpu, mig or declared
    memory_bytes: number // Memory; a disk's size; 0: none, or not told (bytes)
    memory_used_bytes: number // Memory in use; -1: not told (bytes)
    model: string | null // Model
    name: string // NODE/INDEX
    node: string // Node that has it
    numa: number // NUMA node that it is nearest to; -1: not told
    parent: number // Index of the whole device that it is a slice of; -1: of none
    power_w: number | null // Power that it draws (W)
    profile: string | null // Of a MIG slice: 1g.10gb
    reason: string | null // Why it is not ok
    state: string // ok, bad or gone
    temperature_c: number | null // Temperature (°C)
    used_milli: number // What of it is given to tasks, in thousandths
    utilisation_pct: number | null // Share of the time that it computes (%)
}

export interface DifferedAnswer {
    answer: string // First 512 bytes of the mirrored version's answer
    live_answer: string // First 512 bytes of the other
    live_status: number // HTTP status of it
    live_version: number // Version whose answer went out
    request: string | null // "id" of the request, where it had one
    status: number // HTTP status of it
    time_ms: Time // When both had answered (ms)
    version: number // Mirrored version
}

export interface Disagreement {
    answer: string // What the version says
    file: string // CLASS/FILE of the dataset version
    id: string // Identifier
    kind: string // live-right, candidate-right or both-wrong
    label: string // What it is
    live_answer: string // What the live model says
    live_score: number | null // Probability that it gives to that
    place: number // Place in the sample, from 0
    run: string // Run that measured
    score: number | null // Probability that it gives to that
    sha256: string | null // SHA-256 of the picture; of an uploaded dataset GET /blobs has it
}

/** GET /runs/{id}/disagreements */
export interface DisagreementsOfRun {
    items: Disagreement[] // By kind, the surest first
    next: string | null // Cursor of the page after this one; null: it is the last
    why: string | null // Why no samples were compared, and how to get some
}

/** GET /doors */
export interface Door {
    contact: string // ok; lost, if it did not answer; unknown, if no replica has reported
    error: string | null // Why contact was lost last
    id: string // ION:NAME
    ion: string // ION
    kind: string // What reaches it: a kind of doors
    /** The last command or what came in its place: {id, verb, outcome, person, camera, decision, said, time} */
    last: unknown
    last_ms: Time | null // When (ms)
    /** What became of it: done, repeated, late, refused, jammed; silent; locked down, not now, interlocked */
    last_outcome: string | null
    last_person: string | null // For whom
    locked_by: string | null // The user that locked it down; none: it is not locked down
    locked_ms: Time | null // When (ms)
    name: string // Name within the ION
    note: string | null // Why
    pipeline: string // Pipeline that opens it
    since_ms: Time | null // When that began (ms)
    state: string // unknown, locked, open or jammed, as far as its replica knows
}

export interface DriftSignal {
    baseline: Record<string, unknown> | null // Training: edges, counts
    baseline_mean: number | null // Mean of training
    baseline_stddev: number | null // Its standard deviation
    began_ms: Time | null // Since when it drifts; null: it does not
    cameras: string[] | null // Which cameras, where that is known
    cells: unknown[] // Smallest p-value of each part of the time, or null
    distances: Record<string, number> | null // ks, psi, js … of the last window
    drifted: boolean // A confirmed drift, by the last report
    effect: number | null // Size of the difference, whatever the number of values
    farthest: FarFrame[] // The frames of the span whose value lies farthest from training, at most 10
    live: Record<string, unknown> | null // The same of all windows of the span: edges, counts
    live_mean: number | null // Mean of the last window
    live_stddev: number | null // Its standard deviation
    model_version: number // Model version of the last report
    n_drifted: number // Those of them with drift
    n_samples: number // Values of all its windows
    n_windows: number // Reports of this span of time
    p_value: number | null // How often a window like the last comes if nothing has changed
    pipeline: string // Pipeline
    replica: string | null // Replica of the last report
    signal: string // What was compared: score, brightness, feature:NAME …
    state: string // drifts; watch: its p-value is small even among so many signals; none
    statistic: string // What moved: location, spread, shape, rate … or none
    time_ms: Time // When the last report came
    value: number | null // How far
}

export interface Effect {
    kind: string // start, stop, deploy, decide or alert
    link: string | null // Link that it is about
    pipeline: string | null // Pipeline that it is about
    text: string // In a sentence
}

/** GET /sources */
export interface Endpoint {
    error: string | null // The last error, also of one that is connected again
    id: string // ION:PIPELINE:REPLICA:NUMBER
    ion: string // ION
    kind: string | null // Its kind
    n_refused: number // Decisions that it refused
    n_taken: number // Decisions that it took, or frames that it gave, since the replica started
    name: string | null // A door's name, else the kind
    pipeline: string // Pipeline
    replica: string | null // Replica that reports it
    reported_ms: Time | null // When its replica reported last (ms)
    role: string // source, sink, door or server
    since_ms: Time | null // When that began (ms)
    state: string // connected; lost; unknown, if its replica does not report
    url: string | null // Where a source of requests is reached
}

export interface ErrorBody {
    error: { status: string; message: string }
}

/** GET /experiments, GET /experiments/{id} */
export interface Experiment {
    artifact_location: string | null // Where its runs' artifacts go; null = to the server
    created_by: string | null // Who made it
    created_ms: Time // When it was made (ms)
    deleted_ms: Time | null // When it was deleted; null = it is there (ms)
    id: number // Number
    n_runs: number // Runs that are not deleted
    name: string // Name, once in a project
    project: string // Project it belongs to
    tags: Record<string, string> // Tags
    updated_ms: Time // When it was changed last (ms)
}

/** GET /jobs/{id}/explanation */
export interface Explanation {
    ahead: string[] // Names of the first jobs that go before it in its queue
    code: string | null // Why, for programs: full, queue_limit, gang …
    /** By so many runs or more of each job that runs: with n, at least n - 1 of n + 1 starts lie between the two */
    expected_by: number | null
    expected_earliest: Time | null // It may start from then on, by runs of the like; null: unknown
    expected_latest: Time | null // And until then
    expected_start: Time | null // Until when, if jobs end as expected
    have: number | null // How much there is
    helps: Help[] // Changes with which it would not wait so
    id: string // Job
    is_kept: boolean // It has waited for long: what gets free is kept for it
    n_ahead: number // Jobs that go before it in its queue
    name: string // Its name
    need: number | null // How much of it is needed
    past_use: string | null // Where past use counts: by how much its queue has had more than its share lately
    project: string // Its project
    queue: string | null // Queue that it waits in
    resource: string | null // Of what: accelerators, cpus, memory, tasks, or a model
    since: Time | null // Since when
    state: string // State of the job
    why: string | null // Why it waits, in a sentence
}

export interface FarFrame {
    camera: string // Camera
    decision: string | null // The decision; null: not there yet, or no longer kept
    frame: number // Number of the frame
    has_picture: boolean // The decision's picture is kept
    sigmas: number // How many deviations of training that is away from its mean
    time_ms: Time // When it came
    value: number // What the signal is of it
}

/** GET /feedback */
export interface Feedback {
    actor: string | null // Who told the truth
    camera: string // Camera
    decided: string // What it said: a person, a label, or unknown
    decided_ms: Time // When it was decided (ms)
    decision: string // Identifier of the decision
    ion: string // ION
    is_right: boolean // They are the same
    model_version: number // Model version that decided
    pipeline: string // Pipeline
    score: number | null // Score of the decision
    seq: number // Order of arrival
    time_ms: Time // When it was told (ms)
    truth: string // What it should have said
}

export interface Finding {
    differs: boolean // It differs, among all that was asked of this window
    drifted: boolean // So did one of the two windows before: a drift
    p_value: number // How often a window like this comes if nothing has changed
    signal: string // feature:NAME, missing:NAME, category:NAME or range:NAME
    statistic: string // What moved: location, spread, shape or none; rate
    value: number // In standard deviations; of a rate the share of the window
}

export interface Firing {
    acted_ms: Time | null // When its actions were decided on (ms)
    actions: unknown // What became of them: kind, state, message
    alert: string // Alert
    due_ms: Time | null // When something is due next (ms)
    escalated_ms: Time | null // When it was escalated (ms)
    id: string // RULE/ALERT
    over_ms: Time | null // When it was over (ms)
    project: string | null // The rule's project; null: of the platform
    raised_ms: Time // When the alert was raised (ms)
    resend_ms: Time | null // When receivers that forget are told again (ms)
    rule: string // Rule
    state: string // waiting, told, escalated or over
    subject: string | null // About what
    told_ms: Time | null // When its receivers were told (ms)
}

/** GET /forgotten-people */
export interface ForgottenPerson {
    actor: string | null // Who had it done
    created_ms: Time | null // When it was asked for (ms)
    done_ms: Time | null // When it was done (ms)
    id: string // Identifier
    person: string | null // Whose photos were deleted
    project: string | null // In which project; empty: in all
    reason: string | null // Why
    state: string | null // running or done
    summary: unknown // What went: photos, pictures of decisions, files of embeddings, entries of lists
}

export interface Found {
    barred: boolean // The person is on the deny list
    h: number // Height
    name: string | null // Person or label; null: nobody known, not decided yet, or not for the caller to see
    passage: string | null // Its passage, where people are followed
    score: number | null // The best comparison so far
    verdict: string | null // grant, deny or unknown; null: not decided yet, or a label
    w: number // Width
    x: number // Left, in pixels of width and height
    y: number // Top
}

/** GET /ions/{name}/comparison */
export interface FoundComparison {
    comparison: Comparison | null // Of the run; of an ION's version the newest, and one with what serves before all
    why: string | null // Why there is none, and how to get one
}

/** GET /ions/{name}/disagreements */
export interface FoundDisagreements {
    items: Disagreement[] // By kind, the surest first
    next: string | null // Cursor of the page after this one; null: it is the last
    why: string | null // Why no samples were compared, and how to get some
}

export interface GoneRole {
    project: string // Where the caller has it
    role: string // Its name
}

/** GET /groups */
export interface Group {
    created_ms: Time | null // When it was made (ms)
    description: string | null // Who they are
    name: string // Unique name
}

/** GET /groups/{name}/members */
export interface GroupMember {
    created_ms: Time | null // Since when (ms)
    group: string | null // Group
    issuer: string | null // Who says so with each login; absent: an admin put the user in
    name: string // GROUP/USER
    user: string | null // Who is in it
}

export interface Guarantees {
    can_be_kept: boolean // There is enough for all of them
    capacity: Amounts // What the nodes have
    sum: Amounts // Guarantees of all queues
    why: string | null // If not: of what there is too little, and who does not use theirs
}

/** POST /clusters/guess */
export interface GuessedCluster {
    driver: string // The driver that was named
    options: Record<string, unknown> // Its options: those that were said, and what could be found out
}

export interface Health {
    reason: string | null // Why, in a sentence
    since: Time | null // Since when
    status: string // ok, waiting (for a first model), degraded or down
}

export interface HealthReason {
    alert: string // Identifier of the alert
    kind: string // Kind of the alert
    reason: string | null // What is wrong, in a sentence
    severity: string // Severity of the alert
    since: Time | null // Since when
    status: string // What it makes of the whole: degraded or down
    subject: string | null // About what: ion/NAME, node/NAME …
}

export interface HealthReport {
    detail: unknown // Histograms and more
    drifted: boolean // Taken as drift
    id: string // Identifier, made by the replica
    ion: string // ION
    model_version: number // Model version that served
    n_samples: number // Samples in the window
    p_value: number | null // Chance of it without drift
    pipeline: string // Pipeline
    replica: string | null // Replica that measured
    seq: number // Order of arrival
    signal: string // What was compared with the training data: score, brightness
    statistic: string // How: ks, chi2 …
    time_ms: Time // When (ms)
    value: number | null // Value of the statistic
}

/** GET /health/summary */
export interface HealthSummary {
    reason: string | null // Why, in a sentence
    reasons: HealthReason[] // One for each alert that makes it so
    since: Time | null // Since when
    status: string // ok, waiting (for a first model), degraded or down
}

export interface Help {
    change: string // What would be otherwise
    outcome: string // What would become of the job then: starts …
    why: string // Where, or why
}

/** GET /ions, GET /ions/{name} */
export interface Ion {
    comparisons?: AbComparison[] | null // Versions that are compared among the requests of its deployments
    created_by: string // Who applied it first
    created_ms: Time // When (ms)
    document: unknown // What was applied; secrets are shown as ***
    firings?: TriggerFiring[] | null // The newest firings of its triggers, newest first
    health?: Health | null // Is all well?
    links: Link[] // Its links, in the order of the document
    list_revision: number // Counts changes of the lists
    mode: string // production or sandbox
    n_decisions: number // Policy decisions made
    n_firings: number // Firings of triggers
    n_served: number // Promotions and rollbacks made
    name: string // Unique name
    pipelines: Pipeline[] // Its pipelines
    project: string // Project it belongs to
    revision: number // Counts changes of the document
    starts: StartingLink[] // Its links that start pipelines: with a dataset's versions, or with models to measure
    state: string // ACTIVE or DELETED
    updated_ms: Time // Last change of the document (ms)
}

/** GET /ions/{name}/drift */
export interface IonDrift {
    ion: string // ION
    is_cut: boolean // There are more reports than were looked at: take a shorter span
    signals: DriftSignal[] // Those that drift first, then by p-value
    since_ms: Time // From then on
    times: string[] // Begin of each part of the time, as of signals' cells
    until_ms: Time // Until then
}

/** GET /ions/{name}/health */
export interface IonHealth {
    accuracy: LiveAccuracy // How often decisions were right, as far as that is known
    by: string // What the groups are: camera, truth, decided, model_version, pipeline, day
    groups: AccuracyGroup[] // The same by group, most errors first
    ion: string // ION
    kpis: Kpi[] // The newest value of each business figure
    since_ms: Time | null // Of decisions from then on
}

/** GET /jobs, GET /jobs/{id} */
export interface Job {
    attempt: number // Start of the gang, 1 = first
    created_by: string // Who submitted it
    created_ms: Time // When (ms)
    due_ms: Time | null // When it restarts (ms)
    eviction: string | null // While it waits again: for whom it was stopped
    expected_start_ms: Time | null // While it waits: when it may start, if jobs end as expected (ms)
    /** Its tasks stop themselves on a node that does not reach the server, and are started elsewhere no earlier than after this; 0: they do not (ms) */
    fence_ms: number
    finished_ms: Time | null // When it was over (ms)
    has_known_exits: boolean // Some of its exit statuses say that a second try ends the same way
    id: string // Identifier
    ion: string | null // ION it works for
    is_array: boolean // Its tasks are independent of each other: each is placed, tried again and ends on its own
    is_held: boolean // It gets no node until it is released
    is_preemptible: boolean // It may be stopped for others, and goes on later
    is_service: boolean // Its tasks are placed and restarted one by one, for ever; else they start and end together
    kind: string // Kind of job: `weir explain job-kinds`
    /** Role of the token that it was submitted with: its tasks may no more; absent: what who submitted it may */
    limited_to: string | null
    /** How often a failed gang starts again; after a loss of its node 3 times at least, and a node that is only cut off may still run the attempt before: fenced, in its specification, prevents that */
    max_restarts: number
    min_tasks: number // It begins, and goes on, with so many tasks; 0: with all
    n_evictions: number // How often it was stopped for others; no restarts
    n_restarts: number // How often it has
    name: string // Name
    outcome: string | null // While STOPPING: what it will be
    parallel: number // Of an array: so many of its tasks run at once; 0: as many as there is room for
    pipeline: string | null // Pipeline of that ION
    /** Which nodes it may have: {node_selector, tolerations, topology, clusters, overflow_after_ms, pod} */
    placement: unknown
    priority: number // Within its queue: the higher goes first
    project: string // Project it belongs to
    queued_ms: Time | null // Since when it waits again (ms)
    reason: string | null // Why it waits, restarts or failed
    revision: number // Counts changes of all jobs: greater than any before
    run: string | null // Tracked run
    /** Before it is stopped for others it is asked to save, and may for so long; 0: it is not asked (ms) */
    save_within_ms: number
    spec: unknown // What to run, by kind; secrets are shown as ***
    started_ms: Time | null // When all its tasks ran for the first time (ms)
    state: string // PENDING, STARTING, RUNNING, RESTARTING, STOPPING, SUCCEEDED, FAILED or CANCELLED
    time_limit_ms: number // Longest run, from its placement on; 0: none (ms)
    training: number // Number of the training in that pipeline
}

/** POST /join */
export interface JoinedNode {
    node: string // Name of the node
    secret: string // The node's own token
}

export interface KeptPreview {
    bytes_going: number // Size; of rows reckoned
    keep: string // Age that is looked at
    keep_now: string // Age that holds
    kind: string // What grows
    n_going: number // How many would go; of jobs, sweeps and pictures these
    unit: string // What is counted: rows or files
}

/** GET /kinds */
export interface Kind {
    doc: string | null // What it is and does
    id: string // NOUN/NAME
    is_planned: boolean // Known, and not in this version
    name: string | null // What people write
    /** What it is a kind of: source, sink, stage, door-kind, trigger, restart, policy, job-kind, driver, receiver, alert-action, sweep-method, sweep-parameter, proof or detector */
    noun: string | null
    /** Its options: [{name, type, doc}], and of each what it has: default, minimum, maximum, words, required, secret, path */
    options: unknown
    plural: string | null // Several of those
}

export interface KindBounds {
    bounds: string // Shortest and longest age that a project may set
    is_set: boolean // An admin has set them; else: no longer than the platform
    kind: string // What grows
    platform: string // Age that holds where a project has set nothing
    projects: SetTime[] // Projects that have set an age
}

/** GET /ions/{name}/kpis */
export interface Kpi {
    actor: string | null // Who told it
    ion: string // ION
    model: string | null // Model whose version it is of
    model_version: number // Version that it is of; 0: it is the ION's
    name: string // Name of the figure
    seq: number // Order of arrival
    time_ms: Time // When it held; now if not given (ms)
    unit: string | null // Its unit
    value: number | null // Its value
}

export interface LatencyQuantiles {
    max: number | null // The slowest (ms)
    p50: number | null // Median (ms)
    p90: number | null // 90 % are no slower (ms)
    p99: number | null // 99 % are no slower (ms)
}

export interface LineageCode {
    branch: string | null // Git branch
    commit: string | null // Git commit
    dirty: string | null // true: with changes that were not committed
    manifest: string | null // Blob that lists the files it brought along
    patch: string | null // Blob of these changes
    repository: string | null // Where the repository is
    source: string | null // Command or file
    version: string | null // Version of the program
}

export interface LineageDataset {
    bytes: number | null // Size of all files (bytes)
    created_by: string | null // Who made it: a user, or ion/NAME for a preparation
    created_ms: Time | null // When
    dataset: string // Dataset
    digest: string | null // SHA-256 over names and contents
    forgotten: LineageForgotten[] // People who were deleted from it
    is_there: boolean // It is there, for the caller
    n_classes: number | null // Classes
    n_files: number | null // Files
    run: string | null // Run whose program wrote its files
    version: number // Version
}

export interface LineageDecisions {
    first_ms: Time | null // When the first was made
    is_whole: boolean // All are counted; else there were at least so many
    last_ms: Time | null // When the last was made
    n_kept: number | null // Decisions that are there, with an effect or tried
    n_made: number | null // Decisions with an effect that were ever made; null: not known
    n_tried: number | null // Decisions that were only tried
    why: string | null // Why not, in a sentence
}

export interface LineageFinder {
    ion: string // ION
    pipeline: string // Prediction pipeline that finds with it
    since_ms: Time | null // From when on
    until_ms: Time | null // Until when; null: now
}

export interface LineageForgotten {
    actor: string | null // Who had it done
    n_files: number | null // Files that went with them
    person: string | null // Whose photos were deleted
    reason: string | null // Why
    time_ms: Time | null // When
}

export interface LineageGallery {
    dataset: string // Dataset that was its gallery
    decisions: LineageDecisions // Made with this version as the gallery
    ion: string // ION
    pipeline: string // Prediction pipeline
    version: number // Version of that
}

export interface LineageName {
    dataset: string // Dataset
    version: number // Version
}

export interface LineagePlace {
    are_policies_gone: boolean // It served, and what the policies said is no longer kept
    candidate: string // Candidate: the version on this link
    created_ms: Time | null // When it came to the link
    decisions: LineageDecisions | null // Null for a deployment, whose answers are not kept, and in a decision's lineage
    deployment: string | null // Or the deployment
    ion: string // ION
    link: string // Link, FROM:TO
    made_by: string | null // Who triggered its training by hand, or registered it
    model: string // Model
    pipeline: string | null // Prediction pipeline that the link leads to
    policies: PolicyDecision[] // What policies and people decided about it, in order
    served_ms: Time | null // When it began to serve last
    state: string // State of the candidate, as the link has it
    version: number // Its version
}

export interface LineageRead {
    as: string // dataset, validation, or what the program says: training …
    digest: string | null // What the program says tells versions apart
    name: string // Dataset, or what the program calls the data
    version: number | null // Version of the server's dataset; null: of no dataset, or not known
}

export interface LineageReader {
    created_by: string | null // Who started it
    created_ms: Time | null // When it was started
    id: string // Identifier of the run
    kind: string // Kind
    name: string // Name
    status: string // Status
}

export interface LineageRevision {
    actor: string | null // Who applied it
    revision: number // Revision of the ION
    time_ms: Time | null // When
}

export interface LineageRun {
    code: LineageCode // What ran
    created_by: string | null // Who started it
    created_ms: Time | null // When it was started
    deleted_ms: Time | null // When it was deleted
    finished_ms: Time | null // When it ended
    id: string // Identifier
    ion: string | null // ION that started it
    job: string | null // Job that ran it
    kind: string // Kind
    name: string // Name
    parameters: Record<string, string> // What it was started with
    parent: string | null // Run whose checkpoints it went on from
    pipeline: string | null // Pipeline of that
    project: string // Project
    reads: LineageRead[] // Data that it read
    status: string // Status
    trigger: string | null // Why it was started
    user: string | null // Whom its program names
    weights: string | null // File of weights that it began with
}

export interface LineageVersion {
    blob: string | null // SHA-256 of its file
    bytes: number // Size of its file (bytes)
    code_version: string | null // Version of the program that made it
    created_by: string | null // Who registered it
    created_ms: Time | null // When it was registered
    dataset: string | null // Dataset it was trained with
    dataset_version: number | null // Version of that
    deleted_by: string | null // Who deleted it
    deleted_ms: Time | null // When it was deleted
    id: string // Identifier
    model: string // Model
    run: string | null // Run that made it
    source: string | null // Where its files came from, as its maker says
    source_run: string | null // The run, as its maker says
    stage: string | null // Stage
    version: number // Number
}

export interface Link {
    deployment_state: string | null // Of that one: DEPLOYING, SERVING or DEPLOY_FAILED
    from: string // Training pipeline, or model/NAME of a registered model
    id: string // FROM:TO
    pending_versions: number[] // What waits for a person
    policies: string[] // Their kinds, in the order of the chain
    policy: string // Policies that let versions through, in words
    serving_model: string | null // Its model
    serving_version: number | null // What replicas serve
    to: string // Prediction pipeline, or deployment/NAME
    waiting: WaitingVersion[] // What stands in the chain, for a person or a time
    wanted_version: number | null // What the link has chosen
}

/** PUT /ions/{name}/members/{person} */
export interface ListedPerson {
    ion: string // ION
    list: string // allow or deny
    person: string // Person
}

export interface LiveAccuracy {
    accuracy: number | null // Their share; null: none is known
    high: number // Upper end of that interval
    low: number // Lower end of its 95 % interval
    missed: number // Wrong ones that named nobody: false denies, of people who are let in
    n: number // Decisions whose truth is known
    right: number // Those that said it
    taken: number // Wrong ones that named a person, or a label: false admits, if that is let in
}

/** GET /ions/{name}/cameras/{camera}/live */
export interface LivePicture {
    boxes: Found[] // What was found
    height: number // The frame's
    picture: string | null // JPEG in base64, at most 640 pixels wide; null: the caller may not read decisions
    seq: number // Its number: the next question's {after}
    time_ms: Time // When the frame was there
    width: number // The frame's, which the boxes are in; the picture may be smaller
}

/** POST /tasks/{id}/log */
export interface LogEnd {
    offset: number // Where the log ends now
}

/** POST /session/link */
export interface LoginLink {
    expires_s: number // For so many seconds
    url: string // Where it leads; good once
}

/** POST /ions/{name}/look */
export interface Look {
    /** From which score on the pipeline takes one person for another: somebody barred is recognised from lower scores on */
    confused_from: number | null
    nearest: Resemblance[] // All photos together, without {person}
    pictures: LookedAt[] // In the order in which they came
    threshold: number | null // From which score on somebody is recognised
}

export interface LookedAt {
    box: Box | null // The face that counts, the largest
    faces: number | null // Found in the photo; null: the pipeline has no detector, and the whole photo counts
    nearest: Resemblance[] // The five people that it resembles most
    /** As the stage judge sees it: width, sharpness, yaw, pitch, roll, brightness; null: not judged */
    quality: Record<string, number> | null
    usable: boolean // A face that the pipeline would compare
    why: string | null // Why it would not
}

/** GET /ions/{name}/members */
export interface Member {
    actor: string | null // Who put them there
    id: string // ION:PERSON
    ion: string // ION
    list: string // allow or deny
    person: string // Person, as in the gallery
    time_ms: Time // When (ms)
}

/** GET /runs/{id}/metrics */
export interface Metric {
    key: string // What was measured
    run: string // Run
    step: number // At which step
    time_ms: Time | null // When (ms)
    value: number | null // Value; null = not a number
}

/** POST /blobs/missing */
export interface MissingBlobs {
    missing: string[] // Of those that were asked about, in their order
}

/** GET /models, GET /models/{name} */
export interface Model {
    created_by: string | null // Who made it
    created_ms: Time // When it was made (ms)
    deleted_ms: Time | null // When it was deleted; never told of one that is there (ms)
    description: string | null // What it is for
    name: string // Unique name
    project: string // Project it belongs to
    tags?: Record<string, string> | null // Tags; a list leaves them out
    updated_ms: Time | null // When it was changed last (ms)
}

/** GET /models/{name}/aliases */
export interface ModelAlias {
    actor: string | null // Who set it
    alias: string // Alias
    id: string // MODEL:ALIAS
    model: string // Model
    updated_ms: Time // When (ms)
    version: number // Version that it names
}

/** GET /models/{name}/versions/{version}/baseline */
export interface ModelBaseline {
    actor: string | null // Who attached it
    baseline: Record<string, unknown> // {features: {NAME: {kind, histogram or counts}}}
    time_ms: Time // When (ms)
    version: string // Identifier of the model version
}

/** GET /models/{name}/versions/{version}/card */
export interface ModelCard {
    architecture: string | null // What was trained, as its parameters say
    baseline: string[] // What its baseline has
    data: CardData // What it was trained with
    evaluations: CardEvaluation[] // The newest 50 measurements on named datasets
    limits: string[] // What is not known, a sentence each
    lineage: VersionLineage // Where it came from and what it reached
    live: CardLive[] // How it does where it serves now
    made_ms: Time // When the card was made
    model: Model // The model
    n_labels: number | null // Labels that it has; null: none
    version: ModelVersion // The version, without its baseline, with the first 1,000 labels
}

/** GET /models/{name}/versions, GET /models/{name}/versions/{version} */
export interface ModelVersion {
    aliases?: string[] | null // Its names
    baseline: unknown // Histograms that drift is measured against
    blob: string // SHA-256 of the model file
    bytes: number // Size of the model file (bytes)
    changes?: string | null // Of a push: what it takes or gives otherwise than the version before it; null: nothing
    code_version: string | null // Version of the program that made it
    created_by: string | null // Who registered it
    created_ms: Time // When it was registered (ms)
    dataset: string | null // Dataset it was trained on
    dataset_version: number // Version of the dataset; 0 = unknown
    deleted_by: string | null // Who deleted it
    deleted_ms: Time | null // When it was deleted; its row stays for what names it (ms)
    deployments?: string[] | null // Where it has a share, or is the mirror
    description: string | null // What it is
    /** What a stage detect takes the pushed model's outputs for, and why; null: for none that it knows */
    detector?: string | null
    executor?: string | null // What runs it, by its signature
    golden: string | null // SHA-256 of the file of requests and answers that it is checked with before it takes traffic
    id: string // Identifier, made by the client: the same again is the same version
    metrics: Record<string, unknown> | null // Measured quality
    model: string // Model
    parameters: Record<string, unknown> | null // Training parameters
    run: string | null // Run that made it
    run_link: string | null // Address of a page about that run
    signature: Record<string, unknown> | null // What it takes and gives, and what runs it
    source: string | null // Where its files came from, as its maker says
    source_run: string | null // The run that made it, as its maker says, also of another server
    stage: string | null // None, Staging, Production or Archived; changes nothing that runs
    tags?: Record<string, string> | null // Tags
    unservable: string | null // Why it cannot be served; null: it can
    updated_ms: Time | null // When it was changed last (ms)
    version: number // Number
}

/** GET /nodes, GET /nodes/{name} */
export interface Node {
    accelerators_used?: number | null // Accelerators that they have
    agent_version: string | null // Version of the agent
    allocation: string | null // Allocation that it is of
    closed_from_ms: Time | null // Maintenance: when it closes, or closed; null: no window (ms)
    closed_until_ms: Time | null // When it opens again by itself; null: when somebody opens it (ms)
    cluster: string | null // Cluster that supplied it; null: it joined by itself
    cpu_slots: number // CPU slots for tasks
    cpus_busy?: number | null // CPUs that its tasks use, as agents said it last
    cpus_free?: number | null // CPUs that are left for tasks of whole ones
    cpus_used?: number | null // CPUs that are kept for the tasks on it
    created_ms: Time | null // First heartbeat (ms)
    desired_revision: number // Counts changes of what should run there
    device_milli: number // What of each of its accelerators it has, in thousandths; 0: all of it
    devices?: Device[] | null // What it has; not in lists
    disk_bytes: number // Size of the disk that the agent's folder lies on; 0: not told (bytes)
    disk_free_bytes: number // What of it is free (bytes)
    disk_id: string | null // Which disk it is: the same for nodes that share it
    ends_ms: Time | null // When it ends at the latest, as its cluster says (ms)
    inventory: Record<string, unknown> | null // What the agent found: cpu_model, accelerators …
    is_draining: boolean // Takes no new tasks
    labels: Record<string, unknown> | null // What people say of it, for selectors
    last_seen_ms: Time | null // Last heartbeat (ms)
    leaving: string | null // Why it is about to go, as its agent says: what runs there moves on; null: it is not
    left_ms: Time | null // When it left the cluster; null: it is part of it (ms)
    memory_bytes: number // Memory (bytes)
    memory_kept_bytes?: number | null // Memory that is kept for them, bytes
    memory_used_bytes?: number | null // Memory that they use, bytes
    n_accelerators: number // Accelerators
    n_tasks?: number | null // How many they are
    name: string // Host name
    state?: string | null // ready, silent, lost, or left
    taints: unknown[] | null // What a task must tolerate: key, value, effect
    unhealthy: string | null // Why it takes no tasks though it reports
}

/** GET /node-joins */
export interface NodeJoin {
    allocation: string | null // Allocation: only its nodes join with it
    created_by: string // Who made it
    created_ms: Time // When it was made (ms)
    expires_ms: Time // When it ends; absent: an hour from now (ms)
    id: string // Identifier
    n_nodes: number // How many nodes it is good for; absent: one
    n_used: number // How many have joined with it
    node: string | null // The only name of a node that it is good for; absent: any
    secret?: string | null // To join with; when it is made, and never again
    used_by: string | null // Which node did
    used_ms: Time | null // When a node joined with it last (ms)
}

/** GET /decisions/{id}/orders, GET /orders */
export interface Order {
    answered_ms: Time | null // When the answer was there (ms)
    camera: string | null // The decision's camera
    decision: string | null // The decision that lets somebody in; none: the door's hours, or a lock-down
    detail: string | null // Why, in the words of the door, or of its replica
    door: string // Door
    id: string // Identifier of the command
    ion: string | null // ION
    pipeline: string | null // Pipeline
    replica: string | null // Replica that told the door
    sent_ms: Time // When it was sent first, by the clock of the replica's node (ms)
    seq: number // Order of arrival
    /** What came of it: done, repeated, late, refused or jammed, as the door says; silent; sent, if nothing yet; locked-down, not-now or interlocked, if it was not sent */
    state: string
    valid_until_ms: Time | null // Until when a door may carry it out (ms)
    verb: string // open, hold or lock
}

/** GET /outcomes */
export interface Outcome {
    actor: string | null // Who told it
    answered_ms: Time // When it was answered (ms)
    decided: string | null // What the answer said, if the truth was told
    deployment: string // Deployment that answered it
    id: string // REQUEST:NAME
    name: string // success, or what the value is of
    request: string // Identifier of the request
    seq: number // Order of arrival
    time_ms: Time // When it was told (ms)
    truth: string | null // What it should have said
    value: number | null // Of success 1 or 0
    version: number // Version that answered it
}

export interface PastUse {
    accelerators: number // Part of all that there was, from 0 to 1; what was long ago counts less
    cpus: number // The same of CPUs
    memory: number // The same of memory
    /** By what is due to it, did all queues always ask for all: 2 is twice its share; null: nothing is */
    times_share: number | null
}

/** GET /past-use */
export interface PastUseRule {
    half_life_ms: number // After so long what was used counts half (ms)
    weight: number | null // How much past use counts against a queue's share of what is left over; 0: not at all
}

export interface Pipeline {
    against?: string | null // Where the model serves that a comparison compares with
    candidate: string | null // Candidate that serves
    cause: string | null // Why it runs or ran last
    cause_by: string | null // Who triggered it by hand
    claims: Claim[] // What that threshold can and cannot claim; [] without one
    critical?: boolean | null // The ION is down if it fails
    dataset?: string | null // Dataset that a run begins with, gallery of a prediction
    dataset_version: number // Latest version of its dataset seen
    deployment: PipelineDeployment | null // What replicas must serve; secrets are shown as ***
    deployment_revision: number // Counts changes of what replicas must serve
    detector_blob: string | null // Its file
    detector_id: string | null // Its identifier
    detector_model: string | null // Model that its stages find with
    detector_version: number // Version of that; 0: there is none yet
    false_accept_rate?: number | null // Share of impostors that may be accepted
    false_deny_rate?: number | null // Share of impostors that may be taken for the deny list
    gallery_blob: string | null // Its manifest
    gallery_dataset?: string | null // Dataset of the gallery
    gallery_default?: string | null // What becomes of people on no list
    gallery_digest: string | null // Its digest
    gallery_path: string | null // Its folder
    gallery_version: number // Version of the gallery's dataset
    id: string // ION:NAME
    impostors?: string | null // Dataset of people who belong to nobody
    impostors_blob: string | null // Its manifest
    impostors_digest: string | null // Its digest
    impostors_path: string | null // Its folder
    impostors_version: number // Version of the impostors' dataset
    ion: string // ION
    job: string | null // Job of the run or of the replicas
    /** How long its document has pictures of its decisions kept; 0: as its project; below 0: not at all (ms) */
    keep_pictures_ms: number
    kept: PipelineTime | null // How long it keeps pictures; null: as its project
    kind?: string | null // Kind of a training's jobs; null: it is no training
    last_frame_ms: Time | null // When a replica took a frame last (ms)
    measured_model: string | null // Model that came last to be measured
    measured_version: number // Its version; 0: none has come
    model?: string | null // Architecture that is trained
    n_failures: number // Runs, or replicas, that have failed in a row
    name: string // Name within the ION
    new_data?: boolean | null // It runs whenever its dataset gets a new version
    next_fire_ms: Time | null // When a schedule of it fires next (ms)
    output?: string | null // Dataset that a preparation makes
    parameter_servers?: number | null // Parameter servers of a training
    paused_by: string | null // Who paused it: no run begins, replicas do not run
    paused_ms: Time | null // When they did (ms)
    pending_by: string | null // Who triggered the run after that by hand
    pending_cause: string | null // Why it will run again after that
    registers?: string | null // Model that a training makes versions of; null: it is no training
    replicas?: number | null // Replicas of a prediction
    restart?: string | null // Restart rule
    restart_ms: Time | null // When it starts again by its restart rule (ms)
    run: string | null // Run of the pipeline, while it runs
    runs_left: number // Runs that follow this one, as a person asked for
    schedule?: string | null // When it runs by itself
    served_candidate: string | null // Candidate that replicas serve
    served_revision: number // Newest deployment that a replica serves; 0: none
    source?: unknown // Where frames come from; its token is shown as ***
    started_ms: Time | null // When that was started (ms)
    state: string // IDLE, TRAINING, RUNNING, FREEZING; WAITING, DEPLOYING, SERVING, DEPLOY_FAILED; REMOVED
    state_ms: Time | null // Since when it is in this state (ms)
    /** Why the deployment failed, or who paused it; else, until it serves, why its job waits, restarts or failed */
    state_reason: string | null
    threshold: Threshold | null // How a replica set the threshold last
    training: number // Number of the running or last run
    triggers?: ArmedTrigger[] | null // What makes it run, in the order of the document
    type: string // training, prediction, preparation, evaluation or comparison
    updated_ms: Time | null // Last change (ms)
    workers?: number | null // Workers of a training
}

export interface PipelineDeployment {
    gallery?: DeployedGallery | null // Gallery that people are recognised by
    model?: DeployedModel | null // Model that frames are decided by
}

export interface PipelineTime {
    ion: string // ION
    keep: string // Age that holds, or none: its own within the bounds, and no longer than its project
    kind: string // What it keeps: pictures of its decisions
    own: string // Age that its document says, or none
    pipeline: string // Prediction pipeline
}

/** GET /ions/{name}/policy-decisions */
export interface PolicyDecision {
    actor: string // User, or policy
    candidate: string // Candidate
    id: string // ION:NUMBER
    inputs: unknown // What the rule looked at
    ion: string // ION
    link: string // Link, FROM:TO
    model_version: string // Identifier of the model version
    note: string | null // What the user said
    policy: string // Policy of the link's chain; none: no policy was asked
    position: number // Its place in the chain, from 0
    rule: string // Rule, in words
    time_ms: Time // When (ms)
    verdict: string // pass, promote, wait, skip, reject, rollback or set
    version: number // Number of the model version
}

/** GET /pools */
export interface Pool {
    accelerator: string | null // Their model
    accelerator_parts: number // Into how many parts one can be had; 0: whole ones only
    cluster: string // Cluster
    cpu_slots: number // CPUs of a node
    cpus_busy: number // CPUs of its nodes that are in use there, also by others; -1: nobody says
    id: string // CLUSTER/NAME
    max_nodes: number // Nodes there are; 0: nobody says
    memory_bytes: number // Memory of a node (bytes)
    n_accelerators: number // Accelerators of a node
    n_nodes: number // Nodes of it that Weir has now
    n_wanted: number // Nodes of it that Weir waits for
    name: string // Name
    time_max_ms: number // For how long they are given at the most; 0: nobody says (ms)
    weight: number | null // What a node costs beside those of other pools
    why: string | null // Why none can be had now
}

/** GET /projects, GET /projects/{name} */
export interface Project {
    created_ms: Time // When it was made (ms)
    description: string | null // What it is for
    name: string // Unique name
}

/** GET /projects/{name}/members */
export interface ProjectMember {
    created_by: string // Who gave the role
    created_ms: Time // Since when (ms)
    group: string | null // A group whose members may
    name: string // PROJECT/user/NAME or PROJECT/group/NAME
    problem: string | null // Why the role gives no rights: it is not there any more
    project: string // Project
    role: string // viewer, approver, operator, data-scientist, ml-engineer or admin of this project, or a custom role
    user: string | null // Who may; or a group
}

/** GET /projects/{name}/retention */
export interface ProjectRetention {
    items: ProjectTime[] // By kind
    next: string | null // Always null: all kinds are there
    pipelines: PipelineTime[] // Prediction pipelines with a time of their own
}

export interface ProjectTime {
    bounds: string // Shortest and longest age that the project may set
    keep: string // Age that holds for the project
    kind: string // What grows
    own: string | null // Age that the project has set; null: none
    platform: string // Age that holds where nothing is set
    rule: string // What of it goes, and in which order
    what: string // What it is
}

/** GET /queues/{name} */
export interface Queue {
    borrowed: Amounts // What of it is above the guarantee that holds now
    clusters: string[] | null // Where its jobs may run that name no clusters, in order
    created_ms: Time | null // When it was made (ms)
    fair_share: Amounts // What it may have now, by all queues' shares
    guarantee: Amounts // Its guarantee that holds now, by the time of the week
    /** A job of it whose devices have been idle for so long is held; 0: none is; -1: as the parent says (ms) */
    idle_after_ms: number
    is_set: boolean // Somebody set it; else it is implied by a project with jobs
    /** A job of it is not stopped for others before it has run for so long; -1: as the parent says (ms) */
    min_run_ms: number
    n_running: number // Jobs on nodes; a replica counts as one
    n_waiting: number // Jobs that wait for one
    name: string // Name
    /** A job of it has waited for so long before nodes are asked of a cluster for it; -1: as the parent says (ms) */
    overflow_after_ms: number
    parent: string | null // Queue that it is part of; null: at the root
    past_use: PastUse // What it has had of the cluster lately; GET /api/v1/past-use says how late
    priority: number // Among its siblings: the higher gets what is left over first
    project: string | null // Project whose jobs wait in it; null: it only has parts
    shares: Record<string, unknown> | null // What is its: accelerators, cpus, memory, models
    times: unknown[] | null // Other shares at times of the week: days, from, until, shares
    used: Amounts // What its jobs and those of its parts have
    waiting: Amounts // What jobs ask for that have no node
}

export interface QueueAmounts {
    accelerators: number // Devices
    cpus: number // CPUs
}

/** GET /queues */
export interface QueueList {
    items: Queue[] // Those that the caller may see
    next: string | null // Always null: all are there
    others: Record<string, number> // Of the rest: n_queues, n_running and n_waiting, which are jobs
}

export interface QueuePoint {
    asked: QueueAmounts // What it had and what it waited for
    borrowed: QueueAmounts // What of it was above the guarantee
    guarantee: QueueAmounts // What it was guaranteed
    project: string | null // Whose it is; null: a department
    queue: string // Queue
    time: Time // Where the step begins
    used: QueueAmounts // What its jobs had
    waiting: QueueAmounts // What jobs asked for that had no node
}

/** GET /usage/queues */
export interface QueueSeries {
    from: Time // From this hour on
    items: QueuePoint[] // Means by step and queue; steps without a sample are left out
    next: string | null // Always null
    step_s: number // Length of a step
    to: Time // Until before this one
}

export interface QueueShare {
    borrowed: Amounts // What of it is above the guarantee
    fair_share: Amounts // What it may have, by all queues' shares
    guarantee: Amounts // Never taken away while it is asked for
    used: Amounts // What its jobs have after the cycle
    waiting: Amounts // What jobs ask for that have no node
}

export interface RegisteredVersion {
    model: string // Model
    version: number // Its version
}

/** POST /snapshots/{name}/replay */
export interface Replay {
    candidates: ReplayedVersion[] // Where each version gets in the document's chains; empty without a document
    drift: ReplayedDrift // Detectors over the decisions' values
    is_same: boolean // Nothing would have been decided otherwise
    policies: ReplayedPolicies // Each decision made again
}

export interface ReplayedDecision {
    differs: boolean // Is the verdict another?
    id: string // Of the policy decision
    link: string // FROM:TO
    policy: string // That decided
    position: number // In its chain, from 0
    recorded: ToldVerdict // What was decided
    replayed: ToldVerdict | null // What would have been; null: nothing asks any more
    time_ms: Time // When it was made
    version: number // Of the model
    why: string | null // Which option changed, and the rule; null: all is the same
}

export interface ReplayedDrift {
    confirm_k: number // Windows that must differ
    confirm_n: number // Of so many
    false_alarm_rate: number // Per window; 0: nothing was tested
    min_effect: number // Least effect
    signals: ReplayedSignal[] // By replica and model version
    window: number // Values in a window
}

export interface ReplayedPolicies {
    decisions: ReplayedDecision[] // In their order
    n: number // Policy decisions of the span
    n_by_hand: number // Of them, made by people without a policy
    n_differ: number // Of them, another verdict
    n_reworded: number // Of them, the same verdict, said otherwise
    n_same: number // Of them, the same again, byte for byte
}

export interface ReplayedSignal {
    differs: boolean // Is there one where there was none, or the other way round?
    model_version: number // Version that decided
    n_values: number // Compared
    n_windows: number // Tested
    pipeline: string // Pipeline
    recorded_alarm: Time | null // First that was reported then
    replayed_alarm: Time | null // First with these thresholds
    replica: string // Replica
    signal: string // score or brightness
    why: string | null // If so, why; or why it was not tested
    windows: ReplayedWindow[] // The first 1000
}

export interface ReplayedVersion {
    differs: boolean // Are they different?
    link: string // FROM:TO
    recorded: ToldVerdict // What became of it
    replayed: ToldVerdict | null // What would have; null: there is no such link
    version: number // Of the model
    why: string | null // If so, why
}

export interface ReplayedWindow {
    alarm: boolean // Is it drift, confirmed or added up?
    confirmed: boolean // Do enough of the last ones?
    drifted: boolean // Does it differ?
    effect: number // How large the difference is
    kind: string // location, spread, shape or none
    level: number // How far what is too slow for a window has added up: 1 is an alarm
    n_values: number // In it
    p_value: number // How often one like this comes if nothing has changed
    time_ms: Time // Of its last value
    window: number // Number, from 0
}

/** GET /ions/{name}/replicas */
export interface Replica {
    backlog_ms: number // Age of the oldest decision that is not passed on (ms)
    backlog_reader: string | null // Who has not passed it on: server, or a sink
    /** What takes its decisions, the server and each sink: [{name, connected, since, error, taken, refused}], counts since it started */
    consumers: unknown
    decisions_refused: number // Decisions that the server or a sink refused; they are set aside on the replica's disk
    frames_decided: number // Frames decided, durably
    frames_ignored: number // Given to its source now, and no frames: wrong names, or wrong places
    frames_taken: number // Frames taken since it started
    frames_waiting: number // Frames that wait at the source or before the model
    id: string // ION:PIPELINE:REPLICA
    ion: string // ION
    last_frame_ms: Time | null // When a frame was taken last (ms)
    pipeline: string // Pipeline
    /** Where it counts things, and how many are there now: [{camera, place, n, entered, left, to_right, to_left, conditions}], counts since it started */
    places: unknown
    reason: string | null // Why it failed
    replica: string // JOB-RANK
    revision: number // Deployment that the state is about; 0: none yet
    served_revision: number // Deployment that frames are decided by; 0: none
    /** Is its source connected, since when, and the last error: {connected, since, error}, of requests also url; of video also cameras: {NAME: {state, since, error, size, fps, health, …}}; null: it does not say */
    source: unknown
    state: string // STARTING, APPLIED or FAILED
    time_ms: Time // When it reported (ms)
    why_ignored: string | null // What is wrong with the first of them
}

export interface Resemblance {
    person: string // A name in the gallery
    score: number // The largest cosine with a photo of theirs
}

/** GET /reservations, GET /reservations/{name} */
export interface Reservation {
    cpus: number // CPUs that were asked for; 0: none
    created_by: string | null // Who made it
    created_ms: Time | null // When (ms)
    from_ms: Time | null // When it begins; null when it is made: now (ms)
    gpus: number // GPUs that were asked for; 0: none
    name: string // Name
    nodes: unknown // Names of the nodes; null when it is made: those that have what is asked for are chosen
    project: string | null // Project whose jobs may have the nodes; null: a queue's
    queue: string | null // Queue whose jobs, and those below it, may have them; null: a project's
    until_ms: Time | null // When it is over (ms)
}

export interface ResultFile {
    bytes: number // Its size (bytes)
    name: string // Its name
}

/** GET /jobs/{id}/results */
export interface Results {
    files: ResultFile[] // By name
    job: string // Identifier of the job
    manifest: Record<string, unknown> | null // What the files are; null: not all are there
    output: string | null // What it was told to write to; null: its own folder
    state: string // How it is
}

/** GET /retention */
export interface Retention {
    items: RetentionLimit[] // By kind
    next: string | null // Always null: all kinds are there
}

/** GET /retention/bounds */
export interface RetentionBounds {
    items: KindBounds[] // By kind
    next: string | null // Always null: all kinds are there
}

export interface RetentionLimit {
    default: string // The limit unless it is changed
    kind: string // What grows
    limit: string // Age and size it may reach
    rule: string // What of it goes, and in which order
    what: string // What it is
}

/** GET /projects/{name}/retention/preview */
export interface RetentionPreview {
    items: KeptPreview[] // By kind
    next: string | null // Always null: all kinds are there
}

/** GET /ions/{name}/revisions */
export interface Revision {
    actor: string | null // Who applied it
    document: unknown // What was applied; secrets are shown as ***
    id: string // ION:NUMBER
    ion: string // ION
    limited_to: string | null // Role of the token that it was applied with: what it starts may no more
    revision: number // Its number
    time_ms: Time // When (ms)
}

/** GET /roles, GET /roles/{name} */
export interface Role {
    changed_by: string | null // Who changed it last
    changed_ms: Time | null // When (ms)
    created_by: string | null // Who defined it
    created_ms: Time | null // When (ms)
    description: string | null // Whom it is for
    is_custom: boolean // An admin defined it: it can be given in projects only
    is_of_projects: boolean // It can be given in a project
    name: string // Name
    project_rights: string[] // What of it whoever has it in a project may there
    rights: string[] // What whoever has it on the platform may: cancel jobs …
}

/** GET /runs, GET /runs/{id} */
export interface Run {
    accuracy: number | null // Of the last mini-batches of training
    artifact_root: string | null // Where its artifacts are; null = with the server
    code_version: string | null // Version of the program
    created_by: string | null // Who started it
    created_ms: Time // When it was made (ms)
    dataset: string | null // Dataset it reads
    dataset_version: number // Version of the dataset; 0 = unknown
    deleted_ms: Time | null // When it was deleted; null = it is there (ms)
    epoch: number | null // Epoch that it is in
    epochs: number | null // Epochs in all
    experiment: number // Number of its experiment
    experiment_name: string // Name of its experiment
    finished_ms: Time | null // When it ended (ms)
    id: string // Identifier
    images_per_second: number | null // How fast it trains
    ion: string | null // ION it works for
    job: string | null // Job that does it
    kind: string // train, evaluate …; external: Weir did not start it
    loss: number | null // Of the last mini-batches of training
    metrics: Record<string, number> // Last measurement of each key; null = not a number
    model: unknown // Architecture that is trained
    name: string // Name
    parameters: Record<string, unknown> | null // What it was started with; secrets are shown as ***
    params: Record<string, string> // Parameters, also those inside of `parameters`, as "a.b"
    pipeline: string | null // Pipeline of that ION
    progress: number | null // How far it is, 0 to 1
    project: string // Project it belongs to
    registered: RegisteredVersion | null // Model version that came of it
    start_ms: Time | null // When it began, as its program says (ms)
    started_ms: Time | null // When its job began to run; null while it waits
    status: string // RUNNING, SCHEDULED, FINISHED, FAILED or KILLED
    summary: unknown // What came out
    tags: Record<string, string> // Tags
    user: string | null // Whom its program names as its user
    validation_accuracy: number | null // Of data that is not trained with
    validation_loss: number | null // Of data that is not trained with
}

export interface RunGroup {
    greatest: number | null // The greatest of them
    least: number | null // The least of them
    mean: number | null // Of their last measurements
    n_measured: number // Runs of it whose metric is a number
    n_runs: number // Runs of the group
    value: string | null // What the runs of the group have; null: they have none
}

/** GET /runs/groups */
export interface RunGroups {
    items: RunGroup[] // Groups by value, the runs without one first
    next: string | null // Cursor of the page after this one; null: it is the last
}

export interface RunInput {
    context: string | null // What it was read for: training …
    digest: string // What tells its versions apart
    name: string // What the program calls the data
    source: string | null // Where it came from, as the program says
    source_type: string | null // Kind of its source
}

/** GET /runs/{id}/lineage */
export interface RunLineage {
    inputs: RunInput[] // Data that the program says it read
    versions: ModelVersion[] // Model versions that came of the run, the oldest first, without what is large
}

/** GET /runs/summary */
export interface RunSummary {
    logged_params: string[] // Those that programs logged: others are of what a job was started with
    metrics: string[] // Names of metrics that the newest 1000 of them have
    n: number // Runs that the filter fits
    params: string[] // Names of their parameters
    tags: string[] // Names of their tags
}

/** GET /projects/{name}/secrets */
export interface Secret {
    created_by: string // Who has set it last
    created_ms: Time // When it was made (ms)
    id: string // PROJECT/NAME
    name: string // Name in the project
    project: string // Whose jobs may have it
    updated_ms: Time // When its value was set last (ms)
    /** Of a list: jobs that are not over, services, sweeps that run, and active IONs, which name it */
    used_by?: SecretUse[] | null
}

export interface SecretUse {
    id: string // Its identifier
    kind: string // job, service, sweep or ion
    name: string // Its name
    state: string // How it is; of a service, its kind
}

export interface ServedVersion {
    is_mirror: boolean // It gets a copy of each request
    live_percent: number // Share in effect
    n_ready: number // Replicas that have it ready
    percent: number // Share that is asked for
    reason: string | null // Why it failed
    state: string | null // READY on some replica, LOADING or FAILED; null: no replica says
    version: number // Version
}

/** GET /services, GET /services/{id} */
export interface Service {
    address_attempt: number // The attempt that is reached there
    created_ms: Time | null // When it was made (ms)
    id: string // Its name in addresses
    idle_after_ms: number // Without a request for so long it is stopped; 0: as its queue says (ms)
    is_mine: boolean // The caller may open it
    is_shared: boolean // Others of the project may open it, not only its owner
    job: string | null // Its last job
    keeps_path: boolean // Its program is asked for paths that begin with WEIR_SERVICE_PATH; else for those behind it
    kind: string | null // service, notebook or tensorboard
    name: string // Name in its project
    node: string | null // Where it runs
    owner: string | null // Who has made it
    port: number // Port that its program listens on; 0: the one in WEIR_PORT
    project: string | null // Whose it is
    reason: string | null // Why it was stopped
    started_ms: Time | null // When it was started last (ms)
    state: string // STARTING, RUNNING, STOPPING, STOPPED or FAILED
    stopped_ms: Time | null // When it was stopped last (ms)
    url: string | null // Where a browser finds it; null: this server has no address for them
    used_ms: Time | null // When it was used last (ms)
    why: string | null // Why it is so, in a sentence
}

/** POST /services/{id}/ticket */
export interface ServiceTicket {
    address: string // Where the service is then
    expires_s: number // How long the ticket is good (s)
    url: string // Address that lets a browser in, once
}

/** GET /sessions */
export interface Session {
    address: string | null // From where it was opened
    created_ms: Time | null // When it began (ms)
    expires_ms: Time | null // When it ends (ms)
    id: string // Identifier
    limited_to: string | null // At most this role; absent = all that its user may
    proof: string | null // What it was begun with: link, password
    role: string | null // Role that it began with
    token: string | null // Token that its login link was made with; it ends with it
    user: string | null // Who is logged in
}

export interface SetTime {
    own: string // Age that it has set
    project: string // Project
}

export interface Share {
    percent: number // Its part of the requests
    version: number // Version
}

/** GET /alert-silences */
export interface Silence {
    alert: string | null // Key of one alert; null: those that match
    created_by: string // Who began it
    created_ms: Time // When (ms)
    ended_by: string | null // Who ended it; nobody: its time was over
    ended_ms: Time | null // When it ended (ms)
    id: string // Identifier
    kinds: unknown // Kinds of alerts; null: any
    note: string | null // Why
    project: string | null // Whose alerts; null: all
    severities: unknown // info, warning, critical; null: any
    subjects: unknown // Patterns of subjects; null: any
    until_ms: Time // When it ends (ms)
}

/** GET /snapshots, GET /snapshots/{name} */
export interface Snapshot {
    bytes: number // Size of its file (bytes)
    changed_ms: Time | null // When forgetting a person changed its rows and sums (ms)
    created_by: string | null // Who took or imported it
    created_ms: Time // When (ms)
    files?: SnapshotFile[] | null // What is in it; of a single one
    from_ms: Time // Begin of the span (ms)
    has_models: boolean // The models themselves are in it
    id: string // Identifier
    ion: string // ION that it is of; of an imported one it need not be here
    is_imported: boolean // It came as a file
    models: unknown // Model versions that it refers to; the blobs of these are kept
    n_rows: number // Records in it
    name: string // Unique name
    project: string // Project whose it is
    revision: number // Revision of the ION's document when it was taken
    rows?: Record<string, number> | null // Records by table; of a single one
    to_ms: Time // End of the span (ms)
}

export interface SnapshotDecisions {
    deny: number // Of them
    error: number // Of them
    grant: number // Of them
    label: number // Of them
    n: number // Decisions since the span began
    unknown: number // Of them
}

export interface SnapshotFile {
    bytes: number // Size
    name: string // In the folder timeline-export/
    sha256: string // SHA-256
}

export interface SnapshotLink {
    actor: string | null // Who, or policy
    from: string // Pipeline, or model/NAME
    id: string // FROM:TO
    model: string | null // Whose version
    policy: unknown // As the document had it
    rule: string | null // Why, in words
    since_ms: Time | null // Since when
    to: string // Pipeline
    verdict: string | null // promote, set or rollback
    version: number | null // That it had chosen by then
    waiting: SnapshotWaiting[] // Versions that waited
}

export interface SnapshotPart {
    deny: number // Of them
    error: number // Of them
    grant: number // Of them
    label: number // Of them
    n: number // Decisions in it
    time_ms: Time // Its end
    unknown: number // Of them
}

export interface SnapshotPipeline {
    name: string // Name
    type: string // training, prediction, preparation, evaluation or comparison
}

/** GET /snapshots/{name}/state */
export interface SnapshotState {
    alerts: Alert[] // That were open
    course?: SnapshotPart[] | null // With points: what was decided in each part
    decisions: SnapshotDecisions // Counted from the span's begin
    document: unknown // As it was; secrets are shown as ***
    events: WeirEvent[] // By then, newest first, 200 at most
    health: HealthReport[] // The last report of each signal by then
    links: SnapshotLink[] // With what each served and what waited
    pipelines: SnapshotPipeline[] // Of that document
    revision: number // Of the document by then
    time_ms: Time // The moment
}

export interface SnapshotWaiting {
    policy: string | null // Where it stood
    rule: string | null // What it waited for, in words
    since_ms: Time | null // Since when
    version: number // Version
}

export interface StartingLink {
    dataset: string | null // Dataset whose versions start it; null: versions of a model do
    from: string // Pipeline, or model/NAME of a registered model
    id: string // FROM:TO
    to: string // Pipeline that is started
}

/** GET /ions/{name}/statistics */
export interface Statistic {
    actor: string | null // Who told it
    id: string // Identifier of whoever tells it: the same again changes nothing; a new one if not given
    ion: string // ION
    job: string | null // Job whose task told it
    kind: string // number, text, lines, bars, table, graph, heat-map, distribution, opaque
    model_version: number // Of which model version; 0: of none
    name: string // What it is about
    pipeline: string | null // Pipeline; a task's own if not given
    seq: number // Order of arrival
    time_ms: Time // When it held; now if not given (ms)
    value: unknown // Its value, in the form of its kind
}

/** GET /store/usage */
export interface StoreUsage {
    disk_bytes: number // Size of its disk (bytes)
    disk_free_bytes: number // Free on its disk (bytes)
    items: Usage[] // By kind
    next: string | null // Always null: all kinds are there
    steps: DeletionSteps // How long deleting held others up
    total_bytes: number // What the state folder takes (bytes)
}

/** PUT /blobs/{sha256} */
export interface StoredBlob {
    bytes: number // Its size (bytes)
    sha256: string // SHA-256 of its bytes
}

/** POST /decisions */
export interface StoredDecisions {
    duplicates: number // How many were there already
    stored: number // How many are new
}

/** POST /feedback */
export interface StoredFeedback {
    judged: number // Those that are right or wrong; numbers (KPIs) are neither
    right: number // Decisions among them that were right, and requests that were a success
    stored: number // How many truths and numbers were stored
}

/** PUT /datasets/{name}/files/{class}/{file} */
export interface StoredFile {
    bytes: number // Its size (bytes)
    class: string // Its class there
    dataset: string // Dataset
    file: string // Its name
}

/** POST /ions/{name}/statistics */
export interface StoredStatistics {
    stored: number // How many were stored; those that were there are not counted
}

/** GET /sweeps, GET /sweeps/{id} */
export interface Sweep {
    best: number // Number of the best trial; 0: none has a value yet
    best_value: number | null // Its value
    created_by: string | null // Who made it
    created_ms: Time // When (ms)
    document: unknown // What it was made from, with its seed
    ended_ms: Time | null // When it was over (ms)
    ends_as: string | null // While STOPPING: the state to come
    id: string // Identifier
    limited_to: string | null // Role of the token that it was made with: tasks of its trials may no more
    method: string // Kind of its method
    metric: string // Metric of its goal
    n_failed: number // Trials that failed
    n_made: number // Trials so far
    n_open: number // Of them, those that are under way: neither over nor paused
    n_paused: number // Of them, those that wait at a rung
    n_stopped: number // Trials that were stopped early
    n_succeeded: number // Trials that had all their work
    n_trials: number // Trials that there are to be, at most
    name: string // Name
    paused_ms: Time | null // Since when it is paused; 0: it is not (ms)
    pauses_ms: number // How long it was paused before, which its time limit does not count (ms)
    project: string // Project it belongs to
    reason: string | null // Why it is stopping or over; null if it had all its trials
    state: string // RUNNING, PAUSED, STOPPING, SUCCEEDED, FAILED or CANCELLED
    work: number | null // How far its trials have come, added up, in the unit of its rungs
}

/** GET /jobs/{id}/tasks */
export interface Task {
    accelerator_memory_bytes: number // Memory of each; 0: by share (bytes)
    accelerator_milli: number // Share of each in thousandths; 0: by memory
    accelerator_model: string | null // Their model; null: any
    asked_ms: Time | null // When it was asked to save what it has, before it is stopped for others (ms)
    attempt: number // Start, 1 = first
    cpu_millis: number // CPUs that are kept for it, in thousandths of one
    cpu_slots: number // The same in whole CPUs, rounded up
    definition_bytes: number // Length of what its agent is told (bytes)
    desired: string // running or stopped
    devices: string | null // Indices of the devices that it has there: 0,3
    due_ms: Time | null // Of a waiting replica: not before (ms)
    exit_code: number // -1 = none
    finished_ms: Time | null // When its attempt ended (ms)
    id: string // Identifier
    job: string // Job
    memory_bytes: number // Memory it may use, which is kept for it; 0: no limit (bytes)
    message: string | null // How it ended, in words
    mig_profile: string | null // Each is a MIG slice of this profile; null: a device
    n_accelerators: number // Accelerators that it asks for, all on one node
    n_restarts: number // Of a replica: since it last ran for 5 s
    node: string | null // Where it runs
    pid: number // Process on its node
    rank: number // Number in the gang, from 0
    role: string // worker, parameter_server, replica, command, server or evaluator
    saved_ms: Time | null // When it said that it has saved (ms)
    signal: number // Signal that killed it; 0 = none
    started_ms: Time | null // When its attempt was placed (ms)
    state: string // WAITING, STARTING, RUNNING, STOPPING, EXITED or LOST
}

/** POST /ions/{name}/pipelines/{pipeline}/windows */
export interface TestedWindow {
    findings: Finding[] // What was asked of each feature, answered
}

export interface Threshold {
    asked_rate: number | null // The gallery's false_accept_rate
    deny_threshold: number | null // The same for people on the deny list; null: the threshold of all
    deployment_revision: number // Deployment that it belongs to
    expected_rate: number | null // Share of impostors expected at or above it; null: not known
    gallery_people: number // People in the gallery; 0: nobody, or not known
    gallery_version: number // Version of the gallery's dataset
    impostors_enrolled: number // Impostors left out because they are in the gallery
    impostors_version: number // Version of the impostors' dataset; 0: none
    model_version: number // Model version
    people: number // People whose photos gave them
    photos_skipped: number // Photos left out because they are damaged
    refused_share: number | null // Share of the gallery's own photos below it
    replica: string | null // Replica that reports
    rule: string // By what it was set: impostors, gallery, both, blind
    scores: number // Scores that it was set by
    threshold: number | null // Score from which a face counts as known
    threshold_high: number | null // Upper end of that interval
    /** Lower end of its 90 % interval: other impostors would have set it so; null: not known */
    threshold_low: number | null
    time_ms: Time | null // When it was reported (ms)
}

/** GET /tokens */
export interface Token {
    created_ms: Time | null // When it was made (ms)
    expires_ms: Time | null // When it ends; absent = never (ms)
    id: string // Identifier
    name: string // What it is for
    node: string | null // Of role agent: the node it speaks for
    origin: string | null // What it was made with: password (it ends when that is changed); absent: an admin made it
    project: string | null // The only project it is for; absent = all of its user's
    role: string // At most this role, which may be a custom one
    used_ms: Time | null // When it was shown last, by the hour (ms)
    user: string // Whose it is
}

export interface ToldVerdict {
    options?: unknown // The policy, with its options
    rule: string // In words
    verdict: string // pass, promote, wait, skip, reject
}

export interface Tombstone {
    bytes: number // Their size (bytes)
    dataset: string // Dataset
    forgotten: string | null // Of which deletion
    id: string // Identifier
    n_files: number // How many
    person: string | null // Whose photos
    time_ms: Time // When they went (ms)
    version: number // Version that had the photos
}

/** GET /sweeps/{id}/trials */
export interface Trial {
    created_ms: Time // When it was chosen (ms)
    ended_ms: Time | null // When it was over (ms)
    ends_as: string | null // While STOPPING: the state to come
    id: string // SWEEP:NUMBER
    job: string | null // Its job
    number: number // Number, from 1 on
    parameters: unknown // What it tries, by name
    point: unknown // The same as coordinates from 0 to 1
    reason: string | null // Why it was stopped or failed
    resource: number | null // How far it is, in the unit of the sweep's rungs
    run: string | null // The run of that
    rungs: unknown // Its values at the rungs that it has come to
    started_ms: Time | null // When its job was seen to run first (ms)
    state: string // WANTED, RUNNING, PAUSING, PAUSED, STOPPING, SUCCEEDED, STOPPED, FAILED or CANCELLED
    step: number // Step of the last measurement that was looked at; -1: none
    sweep: string // Sweep
    value: number | null // Value of the goal's metric so far
}

export interface TriggerFiring {
    actor: string | null // Who started it by hand, or trigger
    id: string // ION:NUMBER
    inputs: unknown // What the trigger looked at
    ion: string | null // ION
    kind: string // Kind of the trigger
    number: number // Counts the ION's firings
    pipeline: string // Pipeline that it started
    position: number // Place of the trigger in the pipeline's list, from 0
    reason: string // Why, in words
    time_ms: Time // When (ms)
    training: number // Number of the run that it started, or that covers it
}

/** GET /runs/{id}/uploads */
export interface Upload {
    created_by: string | null // Who sends it
    created_ms: Time // When it began (ms)
    id: string // Identifier
    n_parts: number // Parts that it has
    parts: UploadPart[] // The parts that came
    path: string // Path within the run that it will have
    run: string // Run
}

export interface UploadPart {
    bytes: number // Its size (bytes)
    number: number // From 1 on
    sha256: string // Of its bytes
}

export interface Usage {
    kind: string // What grows
    limit: string | null // Age and size it may reach, as weir store retain takes them
    n: number // How many
    n_needed: number // Of the files, those that stay whatever the limits say
    next: string | null // What goes next
    oldest_ms: Time | null // Of what may go, the oldest (ms)
    rule: string // What of it goes, and in which order
    unit: string // What is counted: rows (they lie in the database) or files
    used_bytes: number // Size; of rows reckoned (bytes)
    what: string // What it is
}

export interface UsageFigures {
    asked_cpu_s: number // CPU seconds asked for
    asked_device_s: number // Device seconds asked for: those given, and those waited for
    borrowed_cpu_s: number // Of those, above the queue's guarantee
    borrowed_device_s: number // Of those given, above the queue's guarantee
    given_cpu_s: number // CPU seconds that tasks had
    given_device_s: number // Device seconds that tasks had
    idle_device_s: number // Of those given, while devices did next to nothing
    node_s: number | null // By cluster: node seconds of its allocations; null: by something else
    unknown_device_s: number // Of those given, while the devices said nothing
    used_device_s: number | null // Of those given, by what the devices said; null: they said nothing
}

export interface UsageRow {
    asked_cpu_s: number // CPU seconds asked for
    asked_device_s: number // Device seconds asked for: those given, and those waited for
    borrowed_cpu_s: number // Of those, above the queue's guarantee
    borrowed_device_s: number // Of those given, above the queue's guarantee
    given_cpu_s: number // CPU seconds that tasks had
    given_device_s: number // Device seconds that tasks had
    idle_device_s: number // Of those given, while devices did next to nothing
    key: string | null // Project, user, job, model, cluster, or when the day or hour began
    name: string | null // Of a job: its name
    node_s: number | null // By cluster: node seconds of its allocations; null: by something else
    project: string | null // Of a project or a job
    unknown_device_s: number // Of those given, while the devices said nothing
    used_device_s: number | null // Of those given, by what the devices said; null: they said nothing
}

/** GET /users */
export interface User {
    created_ms: Time | null // When it was made (ms)
    is_disabled: boolean // May not log in
    kind: string // person or service
    name: string // Unique name
    role: string // On the platform: member, viewer, approver, operator, data-scientist, ml-engineer, admin or agent
}

export interface VerdictCounts {
    deny: number // Denied
    error: number // Not decided
    grant: number // Granted
    label: number // A label, of a classifier
    unknown: number // Nobody known, or no label
}

/** GET /audit/verify */
export interface VerifiedAudit {
    chains: VerifiedChain[] // Acts, then accesses
    is_whole: boolean // All of its chains are
}

export interface VerifiedChain {
    begins_after: number // Event that it begins after
    chain: string // acts or accesses
    cut: ChainCut | null // Rows that retention took
    finding: ChainFinding | null // The first damage; null: none
    hash: string // Of its last row: who notes it can compare later
    is_whole: boolean // No row was altered, taken out or put in
    n_before: number // Events older than the chain
    n_rows: number // Rows that were looked at
    number: number // Of its last row
}

/** GET /models/{name}/versions/{version}/lineage */
export interface VersionLineage {
    datasets: LineageDataset[] // Dataset versions on the way back
    deployments: string[] // Deployments where it has a share
    finders: LineageFinder[] // Pipelines that find with it, or did
    is_cut: boolean // There is more than is named
    places: LineagePlace[] // Links that it came to
    runs: LineageRun[] // Runs on the way back, the nearest first
    unknown: string[] // What is not known, a sentence each
    version: LineageVersion // The version
}

/** POST /jobs/{id}/visits */
export interface Visit {
    id: string // Identifier
    job: string // Job
    kind: string // shell, exec, read, write, forward or top
    since_ms: number // Since when (ms since 1970)
    task: string // Task: its role and rank
    what: string // The command, path or port; "" of a shell
    who: string // Who is inside
}

/** GET /jobs/{id}/visits */
export interface VisitList {
    items: Visit[] // Those who are inside
    next: string | null // Always null
}

export interface WaitingVersion {
    approvals: Approval[] // Who has approved it there
    model: string // Model
    policy: string | null // That policy
    position: number // Policy of the chain where it stands, from 0
    state: string // PENDING_REVIEW, WAITING, APPROVED, SHADOW, CANARY or AB
    until_ms: number // When the policy is asked again, ms since 1970; 0: no time
    version: number // Version of the model
    why: string | null // What it waits for, in words
}

/** GET /events, GET /audit */
export interface WeirEvent {
    actor: string | null // Who did it
    chain: number // Of the audit: number in its chain; else 0
    data: unknown // Details
    hash: string | null // Of the audit: SHA-256 of the row behind the one before
    kind: string // What happened, one word
    message: string // A sentence
    project: string | null // Whose the subject is; absent: the platform's
    seq: number // Number, in commit order
    severity: string // info, warning or error
    subject: string | null // To what: ion/NAME, job/ID …
    time_ms: Time // When it happened (ms)
    topic: string // Area: ions, jobs, runs, alerts, system …
}

/** POST /what-if */
export interface WhatIf {
    after: Record<string, number> // The same with the change
    before: Record<string, number> // Jobs by what the next cycle does with them
    guarantees: Guarantees // Of all queues together, with the change
    jobs: ChangedJob[] // Those that it makes a difference to
    n_others: number // Jobs of projects that the caller does not see, of those
    others: Record<string, number> // What becomes of them, by outcome
    queues: ChangedQueue[] // Those that it makes a difference to, and the one that changes
}
