<?php
// snippet
$context = ['header' => 'Connection: keep-alive', 'protocol_version' => '1.1'];
// per request: file_get_contents($url, false, stream_context_create(['http' => $context]))
// end

function request(string $method, string $url, ?string $body): int|string
{
    global $context;
    $made = stream_context_create([
        'http' => $context + ['method' => $method, 'content' => $body ?? '', 'ignore_errors' => true, 'timeout' => 1],
        'ssl' => ['cafile' => getenv('INTACT_CA') ?: ''],
    ]);
    $answer = @file_get_contents($url, false, $made);
    if ($answer === false) {
        return error_get_last()['message'] ?? 'failed';
    }
    return (int) explode(' ', $http_response_header[0])[1];
}
