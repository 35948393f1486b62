/** The commands that the page tells people to type: one table, so that page and CLI (src/cli) cannot drift apart unseen. */
export const COMMANDS = {
    signIn: 'weir login',
    applyIon: 'weir apply -f ion.yaml',
    demo: 'weir demo',
    train: 'weir train --model face-embed --data DIR',
    startAgent: `weir agent --server ${location.origin}`,
    submitJob: 'weir job run NAME -- COMMAND',
} as const
