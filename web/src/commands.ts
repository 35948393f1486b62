/** The commands that empty states tell people to type: one table, so that the page and the CLI cannot drift apart unseen. */
export const COMMANDS = {
    signIn: 'weir login',
    applyIon: 'weir ion apply ion.yaml',
    train: 'weir train --model face-embed --data DIR',
    startAgent: 'weir agent --server URL --token TOKEN',
    submitJob: 'weir job run -- COMMAND',
} as const
