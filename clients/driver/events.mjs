// Answers of the test server as a service streams them: its events, then the end of the body.

// A fetch whose successes have these events, or this text, in place of their body.
export const speaking = (textOf, type = "text/event-stream") => async (url, init) => {
  const response = await fetch(url, init);
  if (response.status !== 200) return response;
  let text = textOf(init);
  const events = new TransformStream({
    transform(_, out) {
      if (text) out.enqueue(new TextEncoder().encode(text));
      text = "";
    },
  });
  return new Response(response.body.pipeThrough(events), { headers: { "content-type": type } });
};
