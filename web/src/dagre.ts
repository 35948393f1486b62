/** A file of its own, /dagre.js: the page fetches it with the first graph that it draws. */
export { graphlib, layout } from '@dagrejs/dagre'
