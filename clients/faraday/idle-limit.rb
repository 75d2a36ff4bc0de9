idle_seconds = (ENV["INTACT_IDLE_MS"] || "4000").to_i / 1000.0
# snippet
require "faraday"
require "net/http/persistent" # the gem net-http-persistent

CONNECTION = Faraday.new do |build|
  build.adapter(:net_http_persistent) { |http| http.idle_timeout = idle_seconds }
end
# end

VERSIONS = { faraday: Faraday::VERSION, "net-http-persistent": Net::HTTP::Persistent::VERSION }
CONNECTION.ssl.ca_file = ENV["INTACT_CA"]

def request(method, url, body)
  CONNECTION.run_request(method.downcase.to_sym, url, body, nil).status
end
