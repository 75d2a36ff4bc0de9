// snippet
using System;
using System.Net.Http;

// end
using System.Threading.Tasks;

class Program : IClient
{
    static readonly double timeoutMs = Driver.Limit("INTACT_TIMEOUT_MS", 10000).TotalMilliseconds;
    // snippet
    static readonly HttpClient client = new HttpClient { Timeout = TimeSpan.FromMilliseconds(timeoutMs) };
    // end

    public async Task<int> Request(string method, string url, string body)
    {
        var asked = new HttpRequestMessage(new HttpMethod(method), url);
        if (body != null) asked.Content = new StringContent(body);
        using (var answer = await client.SendAsync(asked))
        {
            await answer.Content.ReadAsStringAsync();
            return (int)answer.StatusCode;
        }
    }
}
