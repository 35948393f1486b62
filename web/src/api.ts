/**
 * The records the server sends, as the dashboard reads them. This file is the page's side of docs/contracts.txt.
 *
 * Conventions
 * - Every time field ends in _ms in its name and is an RFC 3339 string ("2025-11-21T02:00:00.123Z"). A number is
 *   read as milliseconds since 1970, because a replica's own records carry that.
 * - A list answers {"items": [...], "next": cursor | null}. `?after=<next>` asks for the following page.
 *   /decisions and /events answer newest first when `after` is absent.
 * - A field marked optional may be absent or null: the page then shows nothing for it, never "undefined".
 * - States are lower-case words. An unknown one is shown as it is, in a neutral colour.
 */
export type Time = string | number
export type Opt<T> = T | null | undefined

export interface List<T> {
    items: T[]
    next: Opt<string | number>
}

export interface ErrorBody {
    error: { status: string; message: string }
}

/** GET /session */
export interface Session {
    user: string
    role: string
    csrf: string
}

// ---------------------------------------------------------------------------------------------------- ions

/** GET /ions, GET /ions/{name} */
export interface Ion {
    name: string
    project: string
    state: string
    revision: number
    created_ms: Time
    pipelines: Pipeline[]
    links: Link[]
}

export interface Pipeline {
    name: string
    type: string // "training" | "prediction"
    state: string
    job?: Opt<string>
    dataset?: Opt<string>
    model?: Opt<string>
    workers?: Opt<number>
    parameter_servers?: Opt<number>
    schedule?: Opt<string>
    replicas?: Opt<number>
    deployment?: Opt<Deployment>
}

export interface Deployment {
    revision: number
    model?: Opt<{ name: string; version: number }>
    gallery?: Opt<{ dataset: string; version: number }>
}

export interface Link {
    from: string
    to: string
    policy: string
    serving_version?: Opt<number>
    pending_versions?: Opt<number[]>
}

/** GET /ions/{name}/candidates: a version waiting for (or past) its policy's verdict. */
export interface Candidate {
    id: string
    link_from: string
    link_to: string
    model: string
    version: number
    state: string // "pending" | "approved" | "rejected" | …
    created_ms: Time
    metrics?: Opt<Metrics>
}

// ------------------------------------------------------------------------------------------------- registry

export type Metrics = Record<string, number | string | null>

/** GET /models */
export interface Model {
    name: string
    project?: Opt<string>
    latest_version?: Opt<number>
    created_ms?: Opt<Time>
}

/** GET /models/{m}/versions */
export interface ModelVersion {
    id: string
    model: string
    version: number
    state: string
    run?: Opt<string>
    dataset_version?: Opt<string | number>
    code_version?: Opt<string>
    parameters?: Opt<Record<string, unknown>>
    metrics?: Opt<Metrics>
    bytes?: Opt<number>
    created_ms: Time
}

/** GET /runs, SSE topic "runs" */
export interface Run {
    id: string
    name: string
    job?: Opt<string>
    status: string // "running" | "finished" | "failed" | "cancelled"
    model?: Opt<string>
    dataset_version?: Opt<string | number>
    progress?: Opt<number> // 0..1
    images_per_second?: Opt<number>
    epoch?: Opt<number>
    epochs?: Opt<number>
    loss?: Opt<number>
    accuracy?: Opt<number>
    started_ms?: Opt<Time>
    finished_ms?: Opt<Time>
}

/** GET /runs/{id}/metrics (all keys; ?key= narrows) */
export interface MetricPoint {
    key: string
    step: number
    value: number
    time_ms: Time
}

// ------------------------------------------------------------------------------------------------ decisions

export type Verdict = 'grant' | 'deny' | 'unknown' | 'error'

/** GET /decisions, SSE topic "decisions" */
export interface Decision {
    id: string
    ion: string
    pipeline: string
    replica?: Opt<string>
    camera: string
    frame: number
    time_ms: Time
    verdict: Verdict
    person?: Opt<string>
    score?: Opt<number>
    threshold?: Opt<number>
    model_version?: Opt<number>
    gallery_version?: Opt<number>
    list_revision?: Opt<number>
    latency_us?: Opt<number>
    durable_us?: Opt<number>
    brightness?: Opt<number>
    error?: Opt<string>
    image?: Opt<string> // sha256; null: no picture was kept
}

/** GET /decisions/summary?ion= */
export interface DecisionSummary {
    total: number
    verdicts: Partial<Record<Verdict, number>>
    latency_us?: Opt<{ p50?: Opt<number>; p90?: Opt<number>; p99?: Opt<number> }>
}

// --------------------------------------------------------------------------------------- jobs, nodes, events

/** GET /jobs, SSE topic "jobs" */
export interface Job {
    id: string
    name: string
    kind: string // "train" | "predict" | "command"
    state: string
    project?: Opt<string>
    ion?: Opt<string>
    pipeline?: Opt<string>
    reason?: Opt<string> // why it waits or failed: one sentence for people
    created_ms?: Opt<Time>
    started_ms?: Opt<Time>
    finished_ms?: Opt<Time>
}

/** GET /jobs/{id}/tasks */
export interface Task {
    id: string
    job: string
    role: string // "worker" | "parameter_server" | "replica" | "command"
    rank: number
    attempt?: Opt<number>
    node?: Opt<string>
    state: string
    pid?: Opt<number>
    exit_code?: Opt<number>
    signal?: Opt<number | string>
    message?: Opt<string>
    started_ms?: Opt<Time>
    finished_ms?: Opt<Time>
}

/** GET /nodes */
export interface Node {
    name: string
    state: string
    last_seen_ms?: Opt<Time>
    version?: Opt<string>
    cpu_model?: Opt<string>
    cpus?: Opt<number>
    memory_bytes?: Opt<number>
    tasks_running?: Opt<number>
    accelerators?: Opt<Accelerator[]>
}

export interface Accelerator {
    index: number
    name: string
    memory_bytes?: Opt<number>
    used_bytes?: Opt<number>
}

/** GET /events, SSE topic "events" */
export interface WeirEvent {
    seq: number
    time_ms: Time
    severity: string // "debug" | "info" | "warning" | "error"
    kind: string
    project?: Opt<string>
    ion?: Opt<string>
    subject?: Opt<string>
    message: string
    data?: Opt<unknown>
}

/** GET /alerts, SSE topic "alerts" */
export interface Alert {
    id: string
    ion?: Opt<string>
    kind: string
    message: string
    state: string // "raised" | "acknowledged" | "resolved"
    raised_ms: Time
    data?: Opt<unknown>
}
