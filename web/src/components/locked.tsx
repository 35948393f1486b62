/** An act that needs a right: whoever lacks it sees the same button, locked, and who can give the right. None while the server is away. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { Opt } from '../types'
import { session } from '../state/http'
import { may } from '../state/rights'
import { rolesThatMay } from '../state/roles'
import { Command } from './basics'
import { Dialog } from './dialog'
import { connection } from '../state/stream'
import { Icon } from './icon'

function Explanation({ right, project, onClose }: { right: string; project: Opt<string>; onClose: () => void }) {
    const isOfProject = project !== undefined && project !== null
    const roles = rolesThatMay(right, isOfProject)
    const user = session.value?.user ?? 'NAME'
    const role = roles.find((one) => one !== 'admin') ?? 'admin'
    return (
        <Dialog title={`You may not ${right}${isOfProject ? ` of ${project}` : ''}`} onClose={onClose}>
            <div class="dialog-text">
                <p>
                    {roles.length > 0 ? `It takes the role ${roles.join(' or ')}, ` : 'It takes a role that may, '}
                    {isOfProject ? `in ${project} or on the platform. An admin of either can give it:` : 'on the whole platform. An admin can give it:'}
                </p>
                <Command text={isOfProject ? `weir project grant ${project} ${user} ${role}` : `weir user role ${user} ${role}`} />
            </div>
        </Dialog>
    )
}

export function Act(props: {
    right: string
    project?: Opt<string>
    onClick: () => void
    tone?: 'primary' | 'danger'
    isSmall?: boolean
    disabled?: boolean
    title?: string
    children: ComponentChildren
}) {
    const [isOpen, setOpen] = useState(false)
    const isAllowed = may(props.right, props.project)
    const isLost = connection.value.state === 'lost'
    return (
        <>
            <button
                type="button"
                class={`button ${props.isSmall ? 'small' : ''} ${isAllowed ? (props.tone ?? '') : 'locked'}`}
                title={isAllowed ? (isLost ? 'Offline: the server does not answer' : props.title) : `You may not ${props.right}: see who can give the right`}
                disabled={isAllowed && (props.disabled || isLost)}
                onClick={isAllowed ? props.onClick : () => setOpen(true)}
            >
                {!isAllowed && <Icon name="lock" />}
                {props.children}
            </button>
            {isOpen && <Explanation right={props.right} project={props.project} onClose={() => setOpen(false)} />}
        </>
    )
}
