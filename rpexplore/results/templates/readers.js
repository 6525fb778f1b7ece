// Shows the tables that have all words of the search in their titles or rows.
const finder = document.getElementById("finder")
const words = document.getElementById("words")
const found = document.getElementById("found")
const tables = [...document.querySelectorAll("article")].map((article, index) => ({
  article,
  entry: document.querySelectorAll("#contents li")[index],
  text: article.textContent.toLowerCase(),
}))
finder.hidden = false
words.addEventListener("input", () => {
  const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean)
  let count = 0
  for (const { article, entry, text } of tables) {
    const shown = wanted.every(word => text.includes(word))
    article.hidden = entry.hidden = !shown
    count += shown
  }
  found.textContent = wanted.length ? found.dataset.text.replace("{found}", count) : ""
})
