/** Line icons on a 16 × 16 grid, drawn with currentColor. Always beside text or a label, so hidden from readers. */
const PATHS = {
    lock: 'M4 7.5h8v6H4zM5.5 7.5V5.5a2.5 2.5 0 0 1 5 0v2',
    home: 'M2.5 7L8 2.5 13.5 7v6.5h-4V9.5h-3v4h-4z',
    search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.3 10.3l3.2 3.2',
    down: 'M4.5 6.5L8 10l3.5-3.5',
    filter: 'M2.5 3.5h11L9.5 8.5v4l-3 1v-5z',
    audit: 'M4 2.5h6l2.5 2.5v8.5H4zM6 7h4.5M6 9.5h4.5M6 4.8h2',
    settings: 'M8 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM8 1.5v2.2M8 12.3v2.2M1.5 8h2.2M12.3 8h2.2M3.4 3.4l1.5 1.5M11.1 11.1l1.5 1.5M3.4 12.6l1.5-1.5M11.1 4.9l1.5-1.5',
    more: 'M2.5 4h11M2.5 8h11M2.5 12h11',
    table: 'M2.5 3h11v10h-11zM2.5 6.3h11M2.5 9.6h11M6.2 6.3V13',
    sink: 'M8 10.5v-8M5 5l3-3 3 3M2.5 9.5v4h11v-4',
    bars: 'M2.5 3.5h11M2.5 8h8M2.5 12.5h5',
    queues: 'M2.5 4h11M2.5 8h8M2.5 12h5',
    usage: 'M3 13.5v-5M7 13.5v-11M11 13.5v-7M2 13.5h12',
    plus: 'M8 3v10M3 8h10',
    ions: 'M2.5 4h3v3h-3zM10.5 9h3v3h-3zM5.5 5.5h3a2 2 0 0 1 2 2v3',
    runs: 'M2.5 2.5v11h11M5 11c3 0 2.5-6 8-6.5',
    models: 'M8 2l5.5 3v6L8 14l-5.5-3V5zM2.5 5L8 8l5.5-3M8 8v6',
    decisions: 'M2.5 5.5v-3h3M10.5 2.5h3v3M13.5 10.5v3h-3M5.5 13.5h-3v-3M6 7v.5M10 7v.5M6 10c1.3 1 2.7 1 4 0',
    jobs: 'M2.5 3.5h11v9h-11zM5 6.5L6.5 8 5 9.5M8.5 9.5H11',
    notebooks: 'M4 2.5h8.5v11H4zM4 2.5v11M2.5 5H5M2.5 8H5M2.5 11H5',
    sweeps: 'M3 3.5h10M3 8h10M3 12.5h10M5.5 2v3M10.5 6.5v3M7 11v3',
    alerts: 'M3.5 11.5h9c-1-1.2-1.2-2.3-1.2-4.3a3.3 3.3 0 0 0-6.6 0c0 2-.2 3.1-1.2 4.3zM6.8 13.5h2.4',
    nodes: 'M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.1M5 11h.1',
    cloud: 'M4.5 12.5a2.8 2.8 0 0 1-.3-5.6A4 4 0 0 1 12 6.5a3 3 0 0 1-.5 6z',
    check: 'M3.5 8.5l3 3 6-7',
    cross: 'M4 4l8 8M12 4l-8 8',
    question: 'M5.8 6a2.2 2.2 0 1 1 3.2 2c-.7.4-1 .8-1 1.5M8 12v.1',
    warning: 'M8 2.5l6 11H2zM8 6.5v3M8 11.5v.1',
    info: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 7.5V11M8 5v.1',
    bolt: 'M9 2L3.5 9H8l-1 5 5.5-7H8z',
    sun: 'M8 10.8a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6zM8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M3.4 12.6l.9-.9M11.7 4.3l.9-.9',
    moon: 'M13 9.7A5.5 5.5 0 0 1 6.3 3a5.5 5.5 0 1 0 6.7 6.7z',
    play: 'M5 3.5v9l7-4.5z',
    pause: 'M5.5 3.5v9M10.5 3.5v9',
    camera: 'M2.5 5h3l1-1.5h3l1 1.5h3v7.5h-11zM8 10.7a2.2 2.2 0 1 0 0-4.4 2.2 2.2 0 0 0 0 4.4z',
    person: 'M8 7.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM3 13.5c.5-3 2.5-4 5-4s4.5 1 5 4',
    data: 'M3 4c0-2 10-2 10 0v8c0 2-10 2-10 0zM3 4c0 2 10 2 10 0M3 8c0 2 10 2 10 0',
    copy: 'M5.5 5.5h7.5v8H5.5zM3 10.5v-8h7.5',
    download: 'M8 2.5v8M4.8 7.5L8 10.7l3.2-3.2M3 13.5h10',
    back: 'M9.5 3.5L5 8l4.5 4.5',
    undo: 'M5.5 3L2.5 6l3 3M2.5 6h7a3.8 3.8 0 0 1 0 7.5H6',
    clock: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 4.5V8l2.5 1.5',
    offline: 'M2 2l12 12M4.5 9.5a5 5 0 0 1 3-1.4M2.5 7a8 8 0 0 1 2.7-1.7M8 5c2.2 0 4 .8 5.5 2M8 12v.1',
    edit: 'M3 13l.7-3L10.6 3.1l2.3 2.3L6 12.3zM9 4.7L11.3 7',
    ban: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM4 4l8 8',
} as const

export type IconName = keyof typeof PATHS

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
    return (
        <svg class="icon" width={size} height={size} viewBox="0 0 16 16" aria-hidden="true" focusable="false">
            <path d={PATHS[name]} />
        </svg>
    )
}

/** The mark: water over a weir. */
export function Mark() {
    return (
        <svg class="mark" width="22" height="22" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
            <rect width="24" height="24" rx="6" />
            <path d="M4 9c2.7-3 5.3-3 8 0s5.3 3 8 0M4 15c2.7-3 5.3-3 8 0s5.3 3 8 0" />
        </svg>
    )
}

export const FAVICON =
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><rect width="24" height="24" rx="6" fill="#0b6b8a"/>' +
    '<path d="M4 9c2.7-3 5.3-3 8 0s5.3 3 8 0M4 15c2.7-3 5.3-3 8 0s5.3 3 8 0" fill="none" stroke="#fff" stroke-width="2.2" stroke-linecap="round"/></svg>'
