// The inline script of a preview's frame. It replaces the document by content that the outer page sends.
addEventListener("message", function start({ source, data }) {
  if (source !== parent) return;
  removeEventListener("message", start);
  // A Content-Security-Policy does not cover these ways to the network.
  for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection", "WebTransport"]) delete window[name];
  document.open();
  document.write(data);
  document.close();
  addEventListener("keydown", ({ key }) => key === "Escape" && parent.postMessage("close", "*"));
});
