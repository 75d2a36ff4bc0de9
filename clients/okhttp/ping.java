// snippet
import java.util.concurrent.TimeUnit;
import okhttp3.OkHttpClient;
// end

import java.util.List;
import okhttp3.Request;
import okhttp3.RequestBody;
import okhttp3.Response;

final class Program implements Driver.Client {
    static final long timeoutMs = Driver.timeoutMs();

    // snippet
    static final OkHttpClient CLIENT = new OkHttpClient.Builder()
        .pingInterval(timeoutMs / 2, TimeUnit.MILLISECONDS) // HTTP/2; a PING without an answer ends the connection
        .build();
    // end

    @Override
    public int request(String method, String url, String body) throws Exception {
        RequestBody content = body == null ? null : RequestBody.create(body.getBytes());
        Request request = new Request.Builder().url(url).method(method, content).build();
        try (Response response = CLIENT.newCall(request).execute()) {
            response.body().bytes();
            return response.code();
        }
    }

    @Override
    public int unread(String url) throws Exception {
        try (Response response = CLIENT.newCall(new Request.Builder().url(url).build()).execute()) {
            return response.code();
        }
    }

    @Override
    public String skills() {
        return "pause,concurrent,post,status,unread";
    }

    @Override
    public List<String> jars() {
        return List.of("okhttp-jvm");
    }
}
