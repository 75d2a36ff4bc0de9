<?php
// Runs one client program for the harness: php driver.php PROGRAM. The protocol is in clients/README.md.
require $argv[1];

$versions = ['php' => PHP_VERSION];
if (function_exists('curl_version')) {
    $versions['libcurl'] = curl_version()['version'];
}
$versions += defined('VERSIONS') ? VERSIONS : [];
$can = ['pause', 'post', 'status'];
if (function_exists('all_at_once')) {
    $can[] = 'concurrent';
}
echo json_encode(['versions' => $versions, 'can' => $can]), "\n";

while (($line = fgets(STDIN)) !== false) {
    [$count, $order, $method, $body, $url] = explode(' ', trim($line));
    if ($order === 'at-once') {
        $outcomes = all_at_once((int) $count, $url);
    } else {
        $outcomes = [];
        for ($at = 0; $at < (int) $count; $at++) {
            $outcomes[] = request($method, $url, $method === 'POST' ? 'ping' : null);
        }
    }
    echo json_encode($outcomes), "\n";
}
