// SPDX-License-Identifier: MIT
// Two painters with the same calls: one draws on a canvas, the other writes SVG. Figures use only
// these calls, so that a saved figure is the one that is shown.

const FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";

const ruler =
    typeof document === "undefined" ? null : document.createElement("canvas").getContext("2d");

export function textWidth(text, size) {
    ruler.font = `${size}px ${FONT}`;
    return ruler.measureText(text).width;
}

export class CanvasPainter {
    constructor(context) {
        this.context = context;
    }

    rect(x, y, width, height, fill) {
        this.context.fillStyle = fill;
        this.context.fillRect(x, y, width, height);
    }

    frame(x, y, width, height, stroke, thick = 1) {
        this.context.strokeStyle = stroke;
        this.context.lineWidth = thick;
        this.context.strokeRect(x, y, width, height);
    }

    ring(x, y, radius, stroke, thick) {
        const c = this.context;
        c.strokeStyle = stroke;
        c.lineWidth = thick;
        c.beginPath();
        c.arc(x, y, radius, 0, 2 * Math.PI);
        c.stroke();
    }

    // points: x, y of the begin, two handles and the end.
    curve([x0, y0, x1, y1, x2, y2, x3, y3], stroke, thick, alpha = 1, dash = []) {
        const c = this.context;
        c.globalAlpha = alpha;
        c.strokeStyle = stroke;
        c.lineWidth = thick;
        c.setLineDash(dash);
        c.beginPath();
        c.moveTo(x0, y0);
        c.bezierCurveTo(x1, y1, x2, y2, x3, y3);
        c.stroke();
        c.setLineDash([]);
        c.globalAlpha = 1;
    }

    text(x, y, text, { size = 13, fill, anchor = "start", rotate = 0, weight = 400 }) {
        const c = this.context;
        c.save();
        c.translate(x, y);
        c.rotate((rotate * Math.PI) / 180);
        c.font = `${weight} ${size}px ${FONT}`;
        c.textAlign = anchor === "middle" ? "center" : anchor;
        c.textBaseline = "alphabetic";
        c.fillStyle = fill;
        c.fillText(text, 0, 0);
        c.restore();
    }

    // A band from [left, right] at y0 to [left, right] at y1.
    band([a0, b0, y0], [a1, b1, y1], fill, alpha = 1) {
        const c = this.context,
            middle = (y0 + y1) / 2;
        c.globalAlpha = alpha;
        c.fillStyle = fill;
        c.beginPath();
        c.moveTo(a0, y0);
        c.bezierCurveTo(a0, middle, a1, middle, a1, y1);
        c.lineTo(b1, y1);
        c.bezierCurveTo(b1, middle, b0, middle, b0, y0);
        c.fill();
        c.globalAlpha = 1;
    }

    // Cells of one size without gaps; bytesOf(i, j) gives three bytes. One image, however many,
    // which `images` keeps under the name of the theme for the next time.
    cells(x, y, width, height, rows, columns, bytesOf, images, theme) {
        images[theme] ??= cellImage(rows, columns, bytesOf);
        this.context.imageSmoothingEnabled = false;
        this.context.drawImage(images[theme], x, y, width * columns, height * rows);
    }
}

function cellImage(rows, columns, bytesOf) {
    const image = new ImageData(columns, rows);
    let at = 0;
    for (let i = 0; i < rows; i++)
        for (let j = 0; j < columns; j++) {
            const bytes = bytesOf(i, j);
            image.data[at++] = bytes[0];
            image.data[at++] = bytes[1];
            image.data[at++] = bytes[2];
            image.data[at++] = 255;
        }
    const canvas = document.createElement("canvas");
    canvas.width = columns;
    canvas.height = rows;
    canvas.getContext("2d").putImageData(image, 0, 0);
    return canvas;
}

function escapeXml(text) {
    return text.replace(
        /[&<>"]/g,
        (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c],
    );
}

// Cells from which on an SVG has one picture, not an element for each.
const CELLS_MAX = 10000;

const short = (value) => String(Number(value.toFixed(2)));

export class SvgPainter {
    constructor() {
        this.parts = [];
    }

    rect(x, y, width, height, fill) {
        this.parts.push(
            `<rect x="${short(x)}" y="${short(y)}" width="${short(width)}" ` +
                `height="${short(height)}" fill="${fill}"/>`,
        );
    }

    frame(x, y, width, height, stroke, thick = 1) {
        this.parts.push(
            `<rect x="${short(x)}" y="${short(y)}" width="${short(width)}" ` +
                `height="${short(height)}" fill="none" stroke="${stroke}" stroke-width="${thick}"/>`,
        );
    }

    ring(x, y, radius, stroke, thick) {
        this.parts.push(
            `<circle cx="${short(x)}" cy="${short(y)}" r="${short(radius)}" fill="none" ` +
                `stroke="${stroke}" stroke-width="${thick}"/>`,
        );
    }

    curve(points, stroke, thick, alpha = 1, dash = []) {
        const [x0, y0, ...rest] = points.map(short);
        this.parts.push(
            `<path d="M${x0} ${y0}C${rest.join(" ")}" fill="none" stroke="${stroke}" ` +
                `stroke-width="${short(thick)}" stroke-opacity="${short(alpha)}"` +
                `${dash.length > 0 ? ` stroke-dasharray="${dash.join(" ")}"` : ""}/>`,
        );
    }

    text(x, y, text, { size = 13, fill, anchor = "start", rotate = 0, weight = 400 }) {
        const turn = rotate ? ` rotate(${rotate})` : "";
        this.parts.push(
            `<text transform="translate(${short(x)} ${short(y)})${turn}" ` +
                `font-size="${size}" font-weight="${weight}" fill="${fill}" text-anchor="${anchor}">` +
                `${escapeXml(text)}</text>`,
        );
    }

    band([a0, b0, y0], [a1, b1, y1], fill, alpha = 1) {
        const middle = short((y0 + y1) / 2);
        const [l0, r0, l1, r1, top, bottom] = [a0, b0, a1, b1, y0, y1].map(short);
        this.parts.push(
            `<path d="M${l0} ${top}C${l0} ${middle} ${l1} ${middle} ${l1} ${bottom}L${r1} ${bottom}` +
                `C${r1} ${middle} ${r0} ${middle} ${r0} ${top}Z" fill="${fill}" ` +
                `fill-opacity="${short(alpha)}"/>`,
        );
    }

    cells(x, y, width, height, rows, columns, bytesOf) {
        if (rows * columns > CELLS_MAX) {
            const address = cellImage(rows, columns, bytesOf).toDataURL("image/png");
            this.parts.push(
                `<image x="${short(x)}" y="${short(y)}" width="${short(width * columns)}" ` +
                    `height="${short(height * rows)}" preserveAspectRatio="none" ` +
                    `style="image-rendering:pixelated" href="${address}"/>`,
            );
            return;
        }
        for (let i = 0; i < rows; i++)
            for (let j = 0; j < columns; j++)
                this.rect(
                    x + j * width,
                    y + i * height,
                    width,
                    height,
                    `rgb(${bytesOf(i, j).join(",")})`,
                );
    }

    finish(width, height, title) {
        return (
            `<svg xmlns="http://www.w3.org/2000/svg" width="${short(width)}" ` +
            `height="${short(height)}" viewBox="0 0 ${short(width)} ${short(height)}" ` +
            `font-family="${escapeXml(FONT)}">\n<title>${escapeXml(title)}</title>\n` +
            `${this.parts.join("\n")}\n</svg>\n`
        );
    }
}
