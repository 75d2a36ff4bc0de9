// A hundred listTables calls of the AWS SDK 3, one after the other, at a server that answers with nothing: node list-tables.mjs ENDPOINT
// KEEPALIVE=off hands the SDK an agent that keeps nothing.
//
//   npm install @aws-sdk/client-dynamodb
//   intact serve --body 0 --write-ca ca.pem &
//   export NODE_EXTRA_CA_CERTS=ca.pem
//   intact compare --rtt 30ms --env KEEPALIVE=off,on -- node list-tables.mjs https://localhost:8443/
import { Agent } from "node:https";
import { DynamoDBClient, ListTablesCommand } from "@aws-sdk/client-dynamodb";

const keepAlive = process.env.KEEPALIVE !== "off";
const client = new DynamoDBClient({
  endpoint: process.argv[2],
  region: "us-east-1",
  credentials: { accessKeyId: "x", secretAccessKey: "x" },
  requestHandler: { httpsAgent: new Agent({ keepAlive }) },
});
for (let call = 0; call < 100; call++) await client.send(new ListTablesCommand({}));
client.destroy();
