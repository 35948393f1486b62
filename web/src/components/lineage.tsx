/** Where something comes from and what it reaches, as steps in their order; several of a kind stand one below another. */
import type { ComponentChildren } from 'preact'
import { Icon } from './icon'

export interface Stop {
    key: string
    name: ComponentChildren
    note: ComponentChildren
}

export function Step(props: { icon: 'data' | 'runs' | 'models' | 'camera' | 'sink'; isHere?: boolean; stops: readonly Stop[] }) {
    return props.stops.length === 0 ? null : (
        <li class={props.isHere ? 'here' : ''}>
            <Icon name={props.icon} />
            <span>
                {props.stops.map((stop) => (
                    <span key={stop.key}>
                        <b>{stop.name}</b>
                        <small class="muted">{stop.note}</small>
                    </span>
                ))}
            </span>
        </li>
    )
}
