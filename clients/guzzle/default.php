<?php
require_once 'GuzzleHttp/autoload.php';
// snippet
$client = new GuzzleHttp\Client(); // one for all requests of the process
// end

use GuzzleHttp\Promise\Utils;

define('VERSIONS', ['guzzle' => (string) shell_exec("dpkg-query -W -f '\${Version}' php-guzzlehttp-guzzle")]);

function more(?string $body = null): array
{
    return ['body' => $body, 'http_errors' => false, 'verify' => getenv('INTACT_CA') ?: true];
}

function request(string $method, string $url, ?string $body): int|string
{
    global $client;
    try {
        return $client->request($method, $url, more($body))->getStatusCode();
    } catch (GuzzleHttp\Exception\TransferException $error) {
        return get_class($error);
    }
}

function all_at_once(int $count, string $url): array
{
    global $client;
    $asked = array_map(fn () => $client->requestAsync('GET', $url, more()), range(1, $count));
    $status = fn ($one) => $one['state'] === 'fulfilled' ? $one['value']->getStatusCode() : 'failed';
    return array_map($status, Utils::settle($asked)->wait());
}
