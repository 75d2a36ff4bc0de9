<?php
// snippet
// per request: file_get_contents($url)
// end

function request(string $method, string $url, ?string $body): int|string
{
    $context = stream_context_create([
        'http' => ['method' => $method, 'content' => $body ?? '', 'ignore_errors' => true],
        'ssl' => ['cafile' => getenv('INTACT_CA') ?: ''],
    ]);
    $answer = @file_get_contents($url, false, $context);
    if ($answer === false) {
        return error_get_last()['message'] ?? 'failed';
    }
    return (int) explode(' ', $http_response_header[0])[1];
}
