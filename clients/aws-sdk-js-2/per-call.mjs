// snippet
import AWS from "aws-sdk";

const settings = {};
// in the handler: await new AWS.S3(settings).getObject(...).promise()
// end

const make = (endpoint) => new AWS.S3({ ...settings, endpoint, region: "us-east-1", accessKeyId: "x", secretAccessKey: "x", s3ForcePathStyle: true });

export const packages = ["aws-sdk"];
export const getOnly = true;
export const ownService = true;

function clientOf(origin) {
  return make(origin);
}

export async function request(method, url) {
  const { origin, pathname } = new URL(url);
  const [, Bucket, ...rest] = pathname.split("/");
  await clientOf(origin).getObject({ Bucket, Key: rest.join("/") }).promise();
  return 200;
}
