<?php
require_once 'GuzzleHttp/autoload.php';
// snippet
// in the handler, for each call: $client = new GuzzleHttp\Client();
// end

use GuzzleHttp\Promise\Utils;

define('VERSIONS', ['guzzle' => (string) shell_exec("dpkg-query -W -f '\${Version}' php-guzzlehttp-guzzle")]);

function more(?string $body = null): array
{
    return ['body' => $body, 'http_errors' => false, 'verify' => getenv('INTACT_CA') ?: true];
}

function request(string $method, string $url, ?string $body): int|string
{
    $client = new GuzzleHttp\Client();
    try {
        return $client->request($method, $url, more($body))->getStatusCode();
    } catch (GuzzleHttp\Exception\TransferException $error) {
        return get_class($error);
    }
}
