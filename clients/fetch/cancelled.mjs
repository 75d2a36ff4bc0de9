// snippet
const response = (url) => fetch(url);
// per request, where only the status matters: await (await response(url)).body.cancel()
// end

export const getOnly = true;

export async function request(method, url) {
  const answer = await response(url);
  await answer.body?.cancel();
  return answer.status;
}
