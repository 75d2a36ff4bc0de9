// snippet
import java.net.http.HttpClient;
// end

import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

final class Program implements Driver.Client {
    // snippet
    static final HttpClient CLIENT = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
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
        return HttpRequest.newBuilder(URI.create(url)).method(method, content).build();
    }

    @Override
    public String skills() {
        return "pause,concurrent,post,status,unread";
    }
}
