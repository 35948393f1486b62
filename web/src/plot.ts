/** A file of its own, /plot.js: the page fetches it with the first chart that it draws. */
export { default } from 'uplot'
