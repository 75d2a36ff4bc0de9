const blocks = [...document.querySelectorAll('#blocks > g')].map(group => ({
  group, rect: group.querySelector('rect'), text: group.querySelector('text'),
  title: group.querySelector('title').textContent,
  x: Number(group.dataset.x), width: Number(group.dataset.w), y: Number(group.dataset.y),
}));
const about = document.getElementById('about');
const nameOf = block => block.title.replace(/ \(\d+ of .*$/, '');

function label(block, width) {
  const name = nameOf(block), room = Math.floor((width - 6) / 6.6);
  return name.length <= room ? name : room < 3 ? '' : name.slice(0, room - 2) + '..';
}

// what is left of, right of or narrower than the block at the new scale is hidden; its callers fill the width
function zoom(to) {
  const scale = 1200 / to.width;
  for (const block of blocks) {
    const isCaller = block.y > to.y && block.x <= to.x + 0.01 && block.x + block.width >= to.x + to.width - 0.01;
    const isInside = block.x >= to.x - 0.01 && block.x + block.width <= to.x + to.width + 0.01;
    block.group.style.display = isCaller || isInside ? '' : 'none';
    const x = isCaller ? 0 : (block.x - to.x) * scale, width = isCaller ? 1200 : block.width * scale;
    block.rect.setAttribute('x', x);
    block.rect.setAttribute('width', width);
    block.text.setAttribute('x', x + 3);
    block.text.textContent = label(block, width);
  }
}

function search() {
  const wanted = prompt('Mark functions whose name contains:');
  if (wanted === null) return;
  for (const block of blocks) {
    block.rect.setAttribute('stroke', wanted && nameOf(block).includes(wanted) ? '#a0009c' : 'none');
  }
}

for (const block of blocks) {
  block.group.addEventListener('click', () => zoom(block));
  block.group.addEventListener('mouseover', () => { about.textContent = block.title; });
}
document.getElementById('title').addEventListener('click', () => zoom({ x: 0, width: 1200, y: Infinity }));
document.getElementById('search').addEventListener('click', search);
