# snippet
require "net/http"

# per request: Net::HTTP.get_response(uri)
# end

def request(method, url, body)
  uri = URI(url)
  response = method == "POST" ? Net::HTTP.post(uri, body) : Net::HTTP.get_response(uri)
  response.code.to_i
end
