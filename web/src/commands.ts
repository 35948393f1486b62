/** The commands that the page tells people to type: one table, so that page and CLI (src/cli) cannot drift apart unseen. */
export const COMMANDS = {
    signIn: 'weir login',
    applyIon: 'weir apply -f ion.yaml',
    demo: 'weir demo building-security',
    createDataset: 'weir dataset create NAME --path DIR',
    trackedJob: 'weir job run NAME -- python3 train.py',
    sweep: 'weir sweep run FILE',
    notebook: 'weir notebook start',
    train: 'weir job submit -f job.yaml',
    joinNode: 'weir node join URL TOKEN',
    pushModel: 'weir model push NAME FILE',
    deploy: 'weir deploy MODEL',
    submitJob: 'weir job run NAME -- COMMAND',
} as const
