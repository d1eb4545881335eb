// JupyterLab draws image/png itself and drops the text that the output's metadata holds in ["image/png"].alt.
// This renderer is JupyterLab's own, and adds that text to the <img>. It is a federated extension without a build step.
(() => {
  let shared;

  const load = async name => {
    const [version] = Object.values(shared[name]);
    return (await version.get())();
  };

  const plugin = async () => {
    const { RenderedImage } = await load('@jupyterlab/rendermime');
    class RenderedFigure extends RenderedImage {
      async render(model) {
        await super.render(model);
        const alt = model.metadata[this.mimeType]?.alt;
        if (alt) {
          this.node.querySelector('img').alt = alt;
        }
      }
    }
    const rendererFactory = {
      safe: true,
      mimeTypes: ['image/png'],
      createRenderer: options => new RenderedFigure(options)
    };
    return { __esModule: true, default: { id: 'tile-to-cluster-alt:figure', rendererFactory, rank: 90, dataType: 'string' } };
  };

  window._JUPYTERLAB = window._JUPYTERLAB || {};
  window._JUPYTERLAB['tile-to-cluster-alt'] = {
    init: scope => {
      shared = scope;
    },
    get: async () => {
      const exports = await plugin();
      return () => exports;
    }
  };
})();
