/** The commands that empty states tell people to type: one table, so that the page and the CLI cannot drift apart unseen. */
export const COMMANDS = {
    signIn: 'weir login',
    applyIon: 'weir apply ion.yaml',
    train: 'weir train --model face-embed --data DIR',
    createDataset: 'weir dataset create faces --path DIR',
    startAgent: 'weir agent --server URL --token TOKEN',
    submitJob: 'weir run -- COMMAND',
} as const
