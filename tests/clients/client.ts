// A small program that uses Parley by the generated types: what does not fit them does not compile.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

type Session = components["schemas"]["Session"];
type Message = components["schemas"]["Message"];
type Event = components["schemas"]["Event"];

const [address, token] = process.argv.slice(2);
const parley = createClient<paths>({ baseUrl: address, headers: { Authorization: `Bearer ${token}` } });

function ok<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error));
  return answer.data;
}

async function firstEvent(stream: ReadableStream<Uint8Array> | null): Promise<Event> {
  if (stream === null) throw new Error("There is no stream");
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  for (let text = "", piece = await reader.read(); !piece.done; piece = await reader.read()) {
    text += decoder.decode(piece.value, { stream: true });
    const data = /^data: (.*)\n/m.exec(text);
    if (data?.[1]) return JSON.parse(data[1]) as Event;
  }
  throw new Error("The stream has ended");
}

const me = ok(await parley.GET("/api/me"));
// No field of a new session is required.
const session: Session = ok(await parley.POST("/api/sessions", { body: { title: "From TypeScript" } }));
const params = { path: { session_id: session.id } };
const sent = ok(
  await parley.POST("/api/sessions/{session_id}/messages", {
    params: { ...params, query: { wait: 60 } },
    body: { text: "help", key: "k1" },
  }),
);
const page = ok(
  await parley.GET("/api/sessions/{session_id}/messages", {
    params: { ...params, query: { turn: sent.turn_id ?? undefined } },
  }),
);
const answer: Message | undefined = page.messages.find((each) => each.type === "text" && each.role === "assistant");
const changed = ok(
  await parley.PATCH("/api/sessions/{session_id}", { params, body: { mode: "chat", config: { max_rounds: 2 } } }),
);
const refused = await parley.POST("/api/sessions/{session_id}/messages", { params, body: { text: "other", key: "k1" } });
const exported = await parley.GET("/api/sessions/{session_id}/export", {
  params: { ...params, query: { format: "markdown" } },
  parseAs: "text",
});
const context = ok(await parley.GET("/api/sessions/{session_id}/context", { params }));
const ending = new AbortController();
const stream = await parley.GET("/api/sessions/{session_id}/events", { params, parseAs: "stream", signal: ending.signal });
const event = await firstEvent(ok(stream));
ending.abort();
const gone = await parley.DELETE("/api/sessions/{session_id}", { params });

console.log(
  JSON.stringify({
    me: me.username,
    outcome: sent.outcome,
    answered: Boolean(answer?.text),
    mode: changed.mode,
    rounds: changed.config.max_rounds,
    refused: refused.error?.code,
    exported: exported.data?.includes("From TypeScript"),
    form: context.form,
    event: event.type === "changes" ? event.session?.title : null,
    deleted: gone.response.status,
  }),
);
