// snippet
using System;
using System.Net.Http;

// end
using System.Threading.Tasks;

class Program : IClient
{
    // snippet
    // in the handler, for each call: using (var client = new HttpClient())
    // end

    public async Task<int> Request(string method, string url, string body)
    {
        var asked = new HttpRequestMessage(new HttpMethod(method), url);
        if (body != null) asked.Content = new StringContent(body);
        using (var client = new HttpClient())
        using (var answer = await client.SendAsync(asked))
        {
            await answer.Content.ReadAsStringAsync();
            return (int)answer.StatusCode;
        }
    }
}
