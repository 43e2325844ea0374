// The inside of a preview's frame, inline in its page: becomes what the page around it sends.
addEventListener("message", function start({ source, data }) {
  if (source !== parent) return;
  removeEventListener("message", start);
  // Ways to the network that no Content-Security-Policy covers.
  for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection", "WebTransport"]) delete window[name];
  document.open();
  document.write(data);
  document.close();
  addEventListener("keydown", ({ key }) => key === "Escape" && parent.postMessage("close", "*"));
});
