/**
 * A slider that says what it was and what it would be: of a guarantee, a limit, a share of traffic. onInput follows the
 * hand, onChange comes when it is let go; a key is both. Arrows go one step, with Shift or Page ten.
 */
export function ShareSlider(props: {
    label: string
    value: number
    /** What holds now: a tick stands there. */
    was: number
    max: number
    min?: number
    step?: number
    disabled?: boolean
    text: (value: number) => string
    onInput: (value: number) => void
    onChange?: (value: number) => void
}) {
    const { value, was, max, min = 0, step = 1 } = props
    const part = (at: number) => (max > min ? (Math.min(max, Math.max(min, at)) - min) / (max - min) : 0)
    const isChanged = value !== was
    return (
        <label class="slider">
            <span class="slider-name">{props.label}</span>
            <span class="slider-track" style={{ '--part': `${100 * part(value)}%` }}>
                {isChanged && <i class="tick" style={{ left: `calc(8px + (100% - 16px) * ${part(was)})` }} />}
                <input
                    type="range"
                    name={props.label.toLowerCase().replace(/\W+/g, '-')}
                    min={min}
                    max={max}
                    step={step}
                    value={value}
                    disabled={props.disabled}
                    aria-valuetext={props.text(value)}
                    onInput={(event) => props.onInput(Number(event.currentTarget.value))}
                    onChange={(event) => props.onChange?.(Number(event.currentTarget.value))}
                    onKeyDown={(event) => {
                        const way = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageUp: 10, PageDown: -10 }[event.key]
                        if (way === undefined || event.ctrlKey || event.altKey || event.metaKey) {
                            return
                        }
                        event.preventDefault() // browsers do not agree how far a page is
                        const far = event.shiftKey && Math.abs(way) === 1 ? 10 : 1
                        const next = Math.min(max, Math.max(min, value + way * far * step))
                        props.onInput(next)
                        props.onChange?.(next)
                    }}
                />
            </span>
            <b class="slider-value">{isChanged ? `${props.text(was)} → ${props.text(value)}` : props.text(value)}</b>
        </label>
    )
}
