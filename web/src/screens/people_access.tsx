/** What opens doors: tokens, whose secret is shown once, and sessions; and what each role may. */
import { useRef, useState } from 'preact/hooks'
import type { Role, Session, Token } from '../api'
import { Command, Loaded, Panel, When } from '../components/basics'
import { ask, Dialog } from '../components/dialog'
import { Form } from '../components/form'
import { Act } from '../components/locked'
import { RoleForm } from '../components/role_form'
import { Glyph } from '../components/state'
import { Table, type Column } from '../components/table'
import { NONE, sentence } from '../format'
import { call, segment, send, session } from '../state/http'
import { projects } from '../state/project'
import { may } from '../state/rights'
import { nounOf, roles, verbOf } from '../state/roles'
import type { Team } from '../state/team'

const DAY_MS = 86_400_000
const SOON_MS = 7 * DAY_MS

/* ---- tokens --------------------------------------------------------------------------------------------------------- */

function NewToken({ team, again, onClose }: { team: Team; again: () => void; onClose: () => void }) {
    const [secret, setSecret] = useState('')
    const isMade = useRef(false)
    if (secret !== '') {
        return (
            <Dialog title="The token, this once" onClose={onClose}>
                <div class="dialog-text">
                    <p>Copy it now: nobody can show it again. Whoever has it may do what it allows.</p>
                    <Command text={secret} />
                </div>
                <footer>
                    <button type="button" class="button primary" onClick={onClose}>
                        I have it
                    </button>
                </footer>
            </Dialog>
        )
    }
    const names = team.users.filter((one) => one.role !== 'agent').map((one) => one.name)
    return (
        <Form
            title="New token"
            confirm="Make the token"
            fields={[
                { name: 'name', label: 'What it is for' },
                { name: 'user', label: 'Whose it is', options: names.length > 0 ? names : [session.value?.user ?? ''], value: session.value?.user ?? '' },
                { name: 'role', label: 'May do at most what this role may', options: (roles.data.value ?? []).filter((one) => one.is_of_projects).map((one) => one.name) },
                { name: 'project', label: 'Only in this project; empty: in all of its user', options: ['', ...projects.value] },
                { name: 'days', label: 'Ends in so many days; empty: never', value: '90', isOptional: true },
            ]}
            act={async (values) => {
                const days = Number(values['days'] || 0)
                if (!Number.isInteger(days) || days < 0) {
                    throw new Error('Days: expected a whole number')
                }
                const made = await call<Token & { secret: string }>('POST', '/tokens', {
                    name: values['name'],
                    role: values['role'],
                    user: values['user'],
                    ...(values['project'] ? { project: values['project'] } : {}),
                    ...(days > 0 ? { expires_ms: Date.now() + days * DAY_MS } : {}),
                })
                again()
                isMade.current = true
                setSecret(made.secret)
            }}
            onClose={() => isMade.current || onClose()}
        />
    )
}

const TOKEN_COLUMNS = (again: () => void): Column<Token>[] => [
    { id: 'token', name: 'Token', phone: 'name', sort: (one) => one.name, render: (one) => <b>{`${one.user} / ${one.name}`}</b> },
    { id: 'may', name: 'May', phone: 'more', render: (one) => <span>{`at most ${one.role}${one.project ? ` in ${one.project}` : one.node ? ` of node ${one.node}` : ''}`}</span> },
    { id: 'used', name: 'Last shown', width: '128px', sort: (one) => one.used_ms ?? '', render: (one) => (one.used_ms ? <When time={one.used_ms} /> : <span class="muted">{NONE}</span>) },
    {
        id: 'ends',
        name: 'Ends',
        width: '128px',
        phone: 'state',
        sort: (one) => one.expires_ms ?? '~',
        render: (one) =>
            one.expires_ms ? (
                <span class={Date.parse(one.expires_ms) - Date.now() < SOON_MS ? 'tone-warn-text' : ''}>
                    <When time={one.expires_ms} />
                </span>
            ) : (
                <span class="muted">never</span>
            ),
    },
    {
        id: 'act',
        name: '',
        width: '96px',
        render: (one) => (
            <button
                type="button"
                class="button small"
                onClick={() =>
                    ask({
                        title: `Revoke the token ${one.name} of ${one.user}?`,
                        text: <p>Whoever shows it is refused from now on, and the sessions that were made with it end.</p>,
                        confirm: 'Revoke the token',
                        danger: true,
                        done: `The token ${one.name} is revoked`,
                        act: async () => {
                            await send('DELETE', `/tokens/${segment(one.id)}`)
                            again()
                        },
                    })
                }
            >
                Revoke<span class="hidden"> {one.name}</span>
            </button>
        ),
    },
]

export function Tokens({ team, again }: { team: Team; again: () => void }) {
    const [isOpen, setOpen] = useState(false)
    roles.need()
    return (
        <Panel
            title="Tokens"
            window={may('change tokens') ? 'of all' : 'yours'}
            aside={
                <Act right="change tokens" isSmall onClick={() => setOpen(true)}>
                    New token
                </Act>
            }
        >
            <Table label="Tokens" rows={team.tokens} columns={TOKEN_COLUMNS(again)} keyOf={(one) => one.id} />
            {isOpen && <NewToken team={team} again={again} onClose={() => setOpen(false)} />}
        </Panel>
    )
}

/* ---- sessions ------------------------------------------------------------------------------------------------------- */

export function Sessions({ team, again }: { team: Team; again: () => void }) {
    const columns: Column<Session>[] = [
        { id: 'who', name: 'Who', phone: 'name', sort: (one) => one.user ?? '', render: (one) => <b>{one.user}</b> },
        { id: 'role', name: 'May', phone: 'more', render: (one) => `at most ${one.role}` },
        { id: 'from', name: 'From', width: '160px', phone: 'more', render: (one) => <span class="muted">{one.address ?? NONE}</span> },
        { id: 'since', name: 'Since', width: '128px', sort: (one) => one.created_ms ?? '', render: (one) => <When time={one.created_ms} /> },
        { id: 'ends', name: 'Ends', width: '128px', phone: 'state', render: (one) => <When time={one.expires_ms} /> },
        {
            id: 'act',
            name: '',
            width: '96px',
            render: (one) => (
                <button
                    type="button"
                    class="button small"
                    onClick={() =>
                        ask({
                            title: `End this session of ${one.user}?`,
                            text: <p>That browser is logged out at once. If it is this one, you log in again.</p>,
                            confirm: 'End the session',
                            danger: true,
                            done: 'The session has ended',
                            act: async () => {
                                await send('DELETE', `/sessions/${segment(one.id)}`)
                                again()
                            },
                        })
                    }
                >
                    End<span class="hidden"> the session of {one.user}</span>
                </button>
            ),
        },
    ]
    return (
        <Panel title="Sessions" window={may('change users') ? 'browsers of all' : 'your browsers'}>
            <Table label="Sessions" rows={team.sessions} columns={columns} keyOf={(one) => one.id} />
        </Panel>
    )
}

/* ---- roles ---------------------------------------------------------------------------------------------------------- */

function Cell({ role, right }: { role: Role; right: string }) {
    if (!role.rights.includes(right)) {
        return <span class="muted">{NONE}</span>
    }
    return (
        <span class="tone-good may" title={role.project_rights.includes(right) ? 'in a project, or everywhere' : 'on the whole platform only'}>
            <Glyph tone="good" />
            <span class="hidden">yes</span>
            {!role.project_rights.includes(right) && <small class="muted"> platform</small>}
        </span>
    )
}

/** Verbs by noun, as the server's own table has them. */
export function Matrix() {
    const [open, setOpen] = useState<Role | 'new' | null>(null)
    roles.need()
    return (
        <Loaded resource={roles} rows={8}>
            {(all) => {
                const admin = all.find((one) => one.name === 'admin')
                const rights = [...(admin?.rights ?? [])].filter((right) => !/ (self|replicas)$|^speak |^leave /.test(right))
                rights.sort((a, b) => nounOf(a).localeCompare(nounOf(b)))
                return (
                    <Panel
                        title="What each role may do"
                        window="a role in a project holds there; on the platform, everywhere"
                        aside={
                            <Act right="change users" isSmall onClick={() => setOpen('new')}>
                                New role
                            </Act>
                        }
                    >
                        <div class="table-wrap" tabIndex={0} role="group" aria-label="Roles and rights">
                            <table class="dense matrix">
                                <thead>
                                    <tr>
                                        <th scope="col">With</th>
                                        <th scope="col">What</th>
                                        {all.map((role) => (
                                            <th key={role.name} scope="col" class="num" title={role.description ?? undefined}>
                                                {role.is_custom && may('change users') ? (
                                                    <button type="button" class="link" aria-label={`Change the role ${role.name}`} onClick={() => setOpen(role)}>
                                                        {role.name}
                                                    </button>
                                                ) : (
                                                    role.name
                                                )}
                                            </th>
                                        ))}
                                    </tr>
                                </thead>
                                <tbody>
                                    {rights.map((right, i) => (
                                        <tr key={right} data-right={right}>
                                            <td>{i === 0 || nounOf(rights[i - 1]!) !== nounOf(right) ? <b>{nounOf(right) === 'ions' ? 'IONs' : sentence(nounOf(right))}</b> : ''}</td>
                                            <td>{verbOf(right)}</td>
                                            {all.map((role) => (
                                                <td key={role.name} class="num">
                                                    <Cell role={role} right={right} />
                                                </td>
                                            ))}
                                        </tr>
                                    ))}
                                </tbody>
                            </table>
                        </div>
                        {open && <RoleForm role={open === 'new' ? null : open} all={all} onClose={() => setOpen(null)} />}
                    </Panel>
                )
            }}
        </Loaded>
    )
}
