// snippet
import java.util.concurrent.TimeUnit;
import org.apache.http.impl.client.CloseableHttpClient;
import org.apache.http.impl.client.HttpClients;
// end

import java.util.List;
import org.apache.http.client.methods.CloseableHttpResponse;
import org.apache.http.client.methods.HttpUriRequest;
import org.apache.http.client.methods.RequestBuilder;
import org.apache.http.entity.StringEntity;
import org.apache.http.util.EntityUtils;

final class Program implements Driver.Client {
    static final long lifeMs = Driver.lifeMs();

    // snippet
    static final CloseableHttpClient CLIENT = HttpClients.custom()
        .setConnectionTimeToLive(lifeMs, TimeUnit.MILLISECONDS)
        .build();
    // end

    @Override
    public int request(String method, String url, String body) throws Exception {
        RequestBuilder builder = RequestBuilder.create(method).setUri(url);
        if (body != null) {
            builder.setEntity(new StringEntity(body));
        }
        HttpUriRequest request = builder.build();
        try (CloseableHttpResponse response = CLIENT.execute(request)) {
            EntityUtils.consume(response.getEntity());
            return response.getStatusLine().getStatusCode();
        }
    }

    @Override
    public List<String> jars() {
        return List.of("httpclient");
    }
}
