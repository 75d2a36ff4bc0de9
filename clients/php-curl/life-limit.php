<?php
$life_seconds = max(1, intdiv((int) (getenv('INTACT_LIFE_MS') ?: '4000'), 1000));
// snippet
$curl = curl_init(); // one for all requests of the process
curl_setopt($curl, CURLOPT_MAXLIFETIME_CONN, $life_seconds);
// end

function request(string $method, string $url, ?string $body): int|string
{
    global $curl;
    curl_setopt($curl, CURLOPT_URL, $url);
    curl_setopt_array($curl, options($body));
    $answer = curl_exec($curl);
    return $answer === false ? curl_error($curl) : curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
}

function options(?string $body): array
{
    $options = [CURLOPT_RETURNTRANSFER => true, CURLOPT_CAINFO => getenv('INTACT_CA') ?: ''];
    if ($body === null) {
        return $options + [CURLOPT_HTTPGET => true];
    }
    return $options + [CURLOPT_POSTFIELDS => $body];
}
