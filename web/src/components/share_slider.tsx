/**
 * A slider that says what it was and what it would be: of a guarantee, a limit, a share of traffic. Nothing happens before
 * it is let go: onInput follows the hand, onChange comes at the end.
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
                />
            </span>
            <b class="slider-value">{isChanged ? `${props.text(was)} → ${props.text(value)}` : props.text(value)}</b>
        </label>
    )
}
