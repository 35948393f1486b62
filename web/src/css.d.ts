declare module '*.css' {
    const text: string // of a screen that is a file of its own; those of the page are bundled
    export default text
}
