exports.handler = async () => { const r = await fetch(process.env.INTACT_URL); await r.text(); return r.status; };
