const panels = [...document.querySelectorAll('.panel')].map(panel => ({
  about: panel.querySelector('.about'), title: panel.querySelector('.title'),
  blocks: [...panel.querySelectorAll('.blocks > g')].map(group => ({
    group, rect: group.querySelector('rect'), text: group.querySelector('text'),
    title: group.querySelector('title').textContent,
    x: Number(group.dataset.x), width: Number(group.dataset.w), y: Number(group.dataset.y),
  })),
}));
const nameOf = block => block.title.replace(/ \(\d+ of .*$/, '');

function label(block, width) {
  const name = nameOf(block), room = Math.floor((width - 6) / 6.6);
  return name.length <= room ? name : room < 3 ? '' : name.slice(0, room - 2) + '..';
}

// what is left of, right of or narrower than the block at the new scale is hidden; its callers fill the width
function zoom(panel, to) {
  const scale = 1200 / to.width;
  for (const block of panel.blocks) {
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

// in all graphs, so that the same function is found in each
function search() {
  const wanted = prompt('Mark functions whose name contains:');
  if (wanted === null) return;
  for (const block of panels.flatMap(panel => panel.blocks)) {
    block.rect.setAttribute('stroke', wanted && nameOf(block).includes(wanted) ? '#a0009c' : 'none');
  }
}

for (const panel of panels) {
  for (const block of panel.blocks) {
    block.group.addEventListener('click', () => zoom(panel, block));
    block.group.addEventListener('mouseover', () => { panel.about.textContent = block.title; });
  }
  panel.title.addEventListener('click', () => zoom(panel, { x: 0, width: 1200, y: Infinity }));
}
document.getElementById('search').addEventListener('click', search);
