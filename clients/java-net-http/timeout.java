// snippet
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.time.Duration;
// end

import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpResponse;

final class Program implements Driver.Client {
    static final long timeoutMs = Driver.timeoutMs();

    // snippet
    static final HttpClient CLIENT = HttpClient.newHttpClient(); // one for the whole program

    static HttpRequest.Builder limited(URI uri) {
        return HttpRequest.newBuilder(uri).timeout(Duration.ofMillis(timeoutMs)); // to the header section
    }
    // end

    @Override
    public int request(String method, String url, String body) throws Exception {
        return CLIENT.send(ask(method, url, body), HttpResponse.BodyHandlers.ofString()).statusCode();
    }

    @Override
    public int unread(String url) throws Exception {
        HttpResponse<InputStream> response = CLIENT.send(ask("GET", url, null), HttpResponse.BodyHandlers.ofInputStream());
        response.body().close();
        return response.statusCode();
    }

    private static HttpRequest ask(String method, String url, String body) {
        var content = body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofString(body);
        return limited(URI.create(url)).method(method, content).build();
    }

    @Override
    public String skills() {
        return "pause,concurrent,post,status,unread";
    }
}
