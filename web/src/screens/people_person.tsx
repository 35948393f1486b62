/** One person or service account: roles, tokens, sessions, and what can be done. */
import { useState } from 'preact/hooks'
import type { User } from '../api'
import { Facts, Owner, When } from '../components/basics'
import { ask, type Question } from '../components/dialog'
import { Drawer } from '../components/drawer'
import { Form } from '../components/form'
import { Act } from '../components/locked'
import { RoleChange } from '../components/role_change'
import { toast } from '../components/toast'
import { messageOf, segment, send, session } from '../state/http'
import { may } from '../state/rights'
import { go, hrefWith } from '../state/route'
import { rolesIn, type Team } from '../state/team'

function disableQuestion(user: User, again: () => void): Question {
    return {
        title: `Disable ${user.name}?`,
        text: <p>Sessions and streams of {user.name} end now, and tokens open nothing until the user is enabled again. What {user.name} made stays.</p>,
        confirm: `Disable ${user.name}`,
        danger: true,
        done: `${user.name} is disabled`,
        act: async () => {
            await send('PATCH', `/users/${segment(user.name)}`, { is_disabled: true })
            again()
        },
    }
}

function deleteQuestion(user: User, again: () => void): Question {
    return {
        title: `Delete ${user.name}?`,
        text: <p>Only somebody whom nothing names can be deleted: who made jobs, models or datasets is disabled instead. The name is free afterwards.</p>,
        confirm: `Delete ${user.name}`,
        danger: true,
        done: `${user.name} is gone`,
        act: async () => {
            await send('DELETE', `/users/${segment(user.name)}`)
            go(hrefWith({ who: '' }))
            again()
        },
    }
}

function PasswordForm({ user, onClose }: { user: User; onClose: () => void }) {
    const isOwn = user.name === session.value?.user
    return (
        <Form
            title={`Password of ${user.name}`}
            confirm="Set the password"
            fields={[
                ...(isOwn ? [{ name: 'current', label: 'The password until now', type: 'password' as const, isOptional: true }] : []),
                { name: 'password', label: 'New password', type: 'password' },
            ]}
            act={async (values) => {
                await send('PUT', `/users/${segment(user.name)}/password`, { password: values['password'], ...(values['current'] ? { current: values['current'] } : {}) })
                toast(`${user.name} has a new password`)
            }}
            onClose={onClose}
        />
    )
}

export function Person({ user, team, again }: { user: User; team: Team; again: () => void }) {
    const [open, setOpen] = useState<'role' | 'password' | ''>('')
    const isSelf = user.name === session.value?.user
    const inProjects = rolesIn(team, user.name)
    const tokens = team.tokens.filter((one) => one.user === user.name)
    const sessions = team.sessions.filter((one) => one.user === user.name)
    const enable = async () => {
        try {
            await send('PATCH', `/users/${segment(user.name)}`, { is_disabled: false })
            again()
        } catch (error) {
            toast(messageOf(error), 'bad')
        }
    }
    return (
        <Drawer title={user.name} id="person-title" close={hrefWith({ who: '' })} state={user.is_disabled ? <span class="tone-warn-text">disabled</span> : undefined}>
            <p class="acts row wrap">
                <Act right="change users" isSmall onClick={() => setOpen('role')}>
                    Change role
                </Act>
                {isSelf || may('change users') ? (
                    <button type="button" class="button small" onClick={() => setOpen('password')}>
                        Set password
                    </button>
                ) : (
                    <Act right="change users" isSmall onClick={() => setOpen('password')}>
                        Set password
                    </Act>
                )}
                {!isSelf &&
                    (user.is_disabled ? (
                        <Act right="change users" isSmall onClick={() => void enable()}>
                            Enable
                        </Act>
                    ) : (
                        <Act right="change users" isSmall onClick={() => ask(disableQuestion(user, again))}>
                            Disable
                        </Act>
                    ))}
                {!isSelf && (
                    <Act right="change users" isSmall tone="danger" onClick={() => ask(deleteQuestion(user, again))}>
                        Delete
                    </Act>
                )}
            </p>
            <Facts
                items={[
                    ['Is a', user.kind === 'service' ? 'service account: it logs in by tokens' : 'person'],
                    ['On the platform', user.role],
                    ['Since', <When time={user.created_ms} />],
                    ['Groups', team.groups.filter((one) => one.members.some((member) => member.user === user.name)).map((one) => one.name).join(', ') || 'none'],
                    ['Tokens', tokens.length === 0 ? 'none' : tokens.map((one) => one.name).join(', ')],
                    ['Sessions', sessions.length],
                ]}
            />
            <h3>In projects</h3>
            {inProjects.length === 0 ? (
                <p class="quiet">No role in any project.</p>
            ) : (
                <ul class="list" aria-label={`Roles of ${user.name}`}>
                    {inProjects.map((one) => (
                        <li key={`${one.project} ${one.role} ${one.group ?? ''}`}>
                            <Owner project={one.project} />
                            <span class="grow">{one.role}</span>
                            {one.group && <span class="muted small">by the group {one.group}</span>}
                        </li>
                    ))}
                </ul>
            )}
            {open === 'role' && (
                <RoleChange
                    title={`Role of ${user.name} on the platform`}
                    was={user.role}
                    isOfProject={false}
                    act={async (role) => {
                        await send('PATCH', `/users/${segment(user.name)}`, { role })
                        toast(`${user.name} is ${role} on the platform`)
                        again()
                    }}
                    onClose={() => setOpen('')}
                />
            )}
            {open === 'password' && <PasswordForm user={user} onClose={() => setOpen('')} />}
        </Drawer>
    )
}
