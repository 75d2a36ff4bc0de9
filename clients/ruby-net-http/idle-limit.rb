idle_ms = (ENV["INTACT_IDLE_MS"] || "4000").to_i
IDLE_SECONDS = idle_ms / 1000.0
# snippet
require "net/http"

def open_to(uri)
  http = Net::HTTP.new(uri.host, uri.port)
  http.use_ssl = uri.scheme == "https"
  http.keep_alive_timeout = IDLE_SECONDS
  http.start
end
# end

# a connection can do one request at a time, so each thread has its own
def connection_to(uri)
  known = Thread.current[:known] ||= {}
  known[[uri.scheme, uri.host, uri.port]] ||= open_to(uri)
end

def request(method, url, body)
  uri = URI(url)
  kind = method == "POST" ? Net::HTTP::Post : Net::HTTP::Get
  asked = kind.new(uri)
  asked.body = body if body
  connection_to(uri).request(asked).code.to_i
end
