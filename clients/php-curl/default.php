<?php
// snippet
function get(string $url): CurlHandle
{
    return curl_init($url); // per request
}
// end

function request(string $method, string $url, ?string $body): int|string
{
    $curl = get($url);
    curl_setopt_array($curl, options($body));
    $answer = curl_exec($curl);
    $outcome = $answer === false ? curl_error($curl) : curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
    curl_close($curl);
    return $outcome;
}

function options(?string $body): array
{
    $options = [CURLOPT_RETURNTRANSFER => true, CURLOPT_CAINFO => getenv('INTACT_CA') ?: ''];
    return $body === null ? $options : $options + [CURLOPT_POSTFIELDS => $body];
}
