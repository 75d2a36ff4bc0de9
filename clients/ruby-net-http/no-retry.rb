# snippet
require "net/http"

def open_to(uri)
  http = Net::HTTP.new(uri.host, uri.port)
  http.use_ssl = uri.scheme == "https"
  http.max_retries = 0 # 1 by default, for GET and the like
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
