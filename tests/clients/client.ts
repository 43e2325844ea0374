// A small program that uses Parley by the generated types: what does not fit them does not compile.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

type Session = components["schemas"]["Session"];
type Message = components["schemas"]["Message"];

const [address, token] = process.argv.slice(2);
const parley = createClient<paths>({ baseUrl: address, headers: { Authorization: `Bearer ${token}` } });

function ok<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error));
  return answer.data;
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
    deleted: gone.response.status,
  }),
);
