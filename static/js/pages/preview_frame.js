// The script of a preview's frame, inline in its page: replaces the document by the content that the outer page sends.
addEventListener("message", function start({ source, data }) {
  if (source !== parent) return;
  removeEventListener("message", start);
  // Ways to the network that a Content-Security-Policy does not cover.
  for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection", "WebTransport"]) delete window[name];
  document.open();
  document.write(data);
  document.close();
  addEventListener("keydown", ({ key }) => key === "Escape" && parent.postMessage("close", "*"));
});
