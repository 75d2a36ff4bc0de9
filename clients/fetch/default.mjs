// snippet
// await fetch(url) with nothing set, the body read to its end
// end

export async function request(method, url, body) {
  const response = await fetch(url, { method, body });
  await response.text();
  return response.status;
}

export async function unread(url) {
  const response = await fetch(url);
  return response.status;
}
