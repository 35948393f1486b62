// The part of @dagrejs/graphlib that dagre's layout needs; build.mjs puts it in that package's place.
// The rest (shortest paths, spanning trees, JSON) would be a dead 7 KB of the bundle.
module.exports = {
    Graph: require('@dagrejs/graphlib/lib/graph.js'),
    alg: {
        preorder: require('@dagrejs/graphlib/lib/alg/preorder.js'),
        postorder: require('@dagrejs/graphlib/lib/alg/postorder.js'),
    },
}
